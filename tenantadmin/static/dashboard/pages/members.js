// Who is in the tenant: add by address, change a role, remove.

import { call } from "../api.js";
import { h } from "../dom.js";
import { count } from "../format.js";
import { can, person } from "../people.js";
import { ask, badge, button, field, input, notify, panel, select, table } from "../ui.js";

/** @typedef {{email: string, role: Contract.MembershipRole, all: Contract.Membership[]}} Member */

const ROLES = /** @type {[Contract.MembershipRole, string][]} */ ([["member", "member: reads"], ["admin", "admin: writes too"], ["owner", "owner: manages members too"]]);
const AT_ONCE = 6;

/** @type {import("../router.js").Show} */
export async function show({ tenant, reload }) {
  const [members, who] = await Promise.all([load(tenant), person()]);
  const isOwner = can(tenant, "owner");

  /** @param {Member} member @param {Contract.MembershipRole} [role] none to remove */
  const write = async (member, role) => {
    // Entries of tenants that the caller does not own stay as they are, and must not be sent.
    const others = member.all.filter((one) => one.tenantId !== tenant && can(one.tenantId, "owner"));
    const body = role ? [...others, { tenantId: tenant, role }] : others;
    member.all = await call("PUT /users/{email}/tenants", { email: member.email, body });
  };
  const roleOf = (/** @type {Member} */ member) => {
    if (!isOwner) return badge(member.role, member.role === "owner" ? "info" : "");
    const chosen = select("role", ROLES.map(([key]) => [key, key]), member.role, { "aria-label": `Role of ${member.email}` });
    chosen.addEventListener("change", async () => {
      try {
        await write(member, /** @type {Contract.MembershipRole} */ (chosen.value));
        notify(`${member.email} is ${chosen.value} now.`);
      } catch (error) {
        notify(/** @type {Error} */ (error).message, "error");
        chosen.value = member.role;
      }
    });
    return chosen;
  };
  const remove = async (/** @type {Member} */ member) => {
    const done = await ask({ title: `Remove ${member.email}?`, body: "The tenant's rules and logs are no longer there for them, within seconds.", action: "Remove", danger: true,
      run: () => write(member) });
    if (done) reload();
  };
  const add = async () => {
    const email = input("email", "", { type: "email", placeholder: "name@example.com" });
    const role = select("role", ROLES, "member");
    const done = await ask({ title: "Add a member", action: "Add",
      body: h("div", null, field("Email", email, "The email of a user who has signed in before."), field("Role", role)),
      run: () => call("PATCH /users/{email}/tenants", { email: email.value.trim(), body: [{ tenantId: tenant, role: /** @type {Contract.MembershipRole} */ (role.value) }] }) });
    if (done) reload();
  };
  return h("div", null,
    h("header", { class: "page-head" }, h("h1", null, "Members"), isOwner && button("Add a member", add, "primary")),
    panel(count(members.length, "member"), null, table([
      { head: "Email", cell: (row) => [row.email, row.email === who.email && [" ", badge("you", "info")]], sort: (row) => row.email },
      { head: "Role", cell: roleOf, sort: (row) => row.role },
      ...(isOwner ? [{ head: "Actions", hidden: true, number: true, cell: (/** @type {Member} */ row) => button("Remove", () => remove(row), "quiet small") }] : []),
    ], members, { label: "Members" })));
}

/**
 * The users whom the caller may see and who are in the tenant. Memberships are read user by user.
 * @param {string} tenant
 */
async function load(tenant) {
  const list = await call("GET /users", {});
  const emails = list._links.items.map((item) => item.email);
  /** @type {Member[]} */
  const members = [];
  while (emails.length) {
    await Promise.all(emails.splice(0, AT_ONCE).map(async (email) => {
      const all = await call("GET /users/{email}/tenants", { email });
      const here = all.find((one) => one.tenantId === tenant);
      if (here) members.push({ email, role: here.role, all });
    }));
  }
  return members.sort((x, y) => x.email.localeCompare(y.email));
}
