// Who is in the tenant: invite by address, change a role, remove.

import { call } from "../api.js";
import { ago, count, when } from "../format.js";
import { invitation, savingSelect, whenAsked } from "../forms.js";
import { AUDITOR, ROLES, can, person } from "../people.js";
import {
  acts,
  age,
  ask,
  badge,
  beside,
  button,
  field,
  fine,
  h,
  input,
  notify,
  pageHead,
  tablePanel,
  text,
} from "../ui.js";

/** @typedef {{email: string, role: Contract.MembershipRole, all: Contract.Membership[]}} Member */

const AT_ONCE = 6;

const CAN = {
  member: "read rules and summaries, query the log",
  admin: "read, query the log, change rules and configuration",
  owner: "all that an admin can, and manage members",
};

const AUDITS =
  "read the overview, savings, recommendations, digests and rules; no log, statements, users or SQL";

/** @type {Show} */
export async function show(context) {
  const { tenant, reload } = context;
  const who = await person();
  const isOwner = can(tenant, "owner");
  const [members, auditors, invitations, limited, asked] = await Promise.all([
    load(tenant),
    isOwner ? call("GET /config/grants", {}).then((found) => auditorsOf(found, tenant)) : [],
    isOwner
      ? call("GET /config/tenants/{tenant}/invitations", { tenant }).then(
          (found) => found.invitations,
        )
      : [],
    isOwner ? limitedAccess(tenant) : new Map(),
    isOwner
      ? call("GET /config/tenants/{tenant}/access-requests", { tenant }).then(
          (found) => found.requests,
        )
      : [],
  ]);

  const [guests, lasting] = [true, false].map((isLimited) =>
    members.filter((one) => limited.has(one.email) === isLimited),
  );

  /** @param {Member} member @param {Contract.MembershipRole} [role] none to remove */
  const write = async (member, role) => {
    // Entries of tenants that the caller does not own stay as they are, and must not be sent.
    const others = member.all.filter(
      (one) => one.tenantId !== tenant && can(one.tenantId, "owner"),
    );
    const body = role ? [...others, { tenantId: tenant, role }] : others;
    member.all = await call("PUT /users/{email}/tenants", { email: member.email, body });
  };
  const roleOf = (/** @type {Member} */ member) => {
    if (!isOwner) return badge(member.role, member.role === "owner" ? "info" : "");
    return savingSelect(
      "role",
      Object.keys(ROLES),
      member.role,
      `Role of ${member.email}`,
      async (role) => {
        await write(member, /** @type {Contract.MembershipRole} */ (role));
        notify(`${member.email} is ${role} now.`);
      },
    );
  };
  const remove = (/** @type {Member} */ member) =>
    ask({
      title: `Remove ${member.email}?`,
      body: "The tenant's rules and logs will be gone for them, within seconds.",
      action: "Remove",
      danger: true,
      run: () => write(member),
      then: reload,
    });
  const after = async (/** @type {Promise<any>} */ act, /** @type {string} */ done) => {
    await act;
    notify(done);
    reload();
  };
  const withdraw = (/** @type {Contract.Invitation} */ one) =>
    after(
      call("DELETE /config/tenants/{tenant}/invitations/{invitation}", {
        tenant,
        invitation: one.id,
      }),
      `Withdrawn: ${one.email}.`,
    );
  const approve = (/** @type {Contract.AccessRequest} */ one) =>
    ask({
      title: `Give ${one.staff} access?`,
      body: `They may read this tenant's logs for ${one.hours} h from now on. Their reason: ${one.reason}`,
      action: "Approve",
      run: () =>
        call("POST /config/tenants/{tenant}/access-requests/{access_request}/approve", {
          tenant,
          access_request: one.id,
        }),
      then: reload,
    });
  const decline = (/** @type {Contract.AccessRequest} */ one) =>
    after(
      call("POST /config/tenants/{tenant}/access-requests/{access_request}/decline", {
        tenant,
        access_request: one.id,
      }),
      `Declined: ${one.staff}.`,
    );
  // Platform admins see the requests, but only owners answer them.
  const mayAnswer = who.roles.get(tenant) === "owner";
  const invite = () => {
    const { fields, send } = invitation(tenant);
    return ask({
      title: "Invite someone",
      action: "Invite",
      body: fields,
      run: send,
      then: reload,
    });
  };
  if (isOwner) whenAsked(context, invite);
  const audit = () => {
    const email = input("grantee", "", {
      type: "email",
      required: true,
      placeholder: "name@example.com",
    });
    const until = input("expiresAt", "", { type: "date" });
    return ask({
      title: "Add an auditor",
      action: "Add",
      body: [
        field("Email", email, "Tell them to sign in with this address. They get no mail."),
        field("Until", until, "Optional: the last day (UTC)."),
        fine(
          `An auditor can ${AUDITS}. Recommendations and digests name the statements that they are about.`,
        ),
      ],
      run: async () => {
        const grantee = email.value.trim();
        await call("POST /config/grants", {
          body: {
            grantee,
            resource: "tenant",
            resourceId: tenant,
            permissions: AUDITOR,
            ...(until.value && { expiresAt: `${until.value}T23:59:59Z` }),
          },
        });
        notify(`${grantee} reads the numbers now.`);
      },
      then: reload,
    });
  };
  const dismiss = (/** @type {Contract.PermissionGrantItem} */ { id, grantee }) =>
    ask({
      title: `Remove ${grantee}?`,
      body: "The tenant’s numbers will be gone for them, within seconds.",
      action: "Remove",
      danger: true,
      run: () => call("DELETE /config/grants/{grant}", { grant: id }),
      then: reload,
    });
  const state = text("State", "state", (state) => badge(state, state === "open" ? "info" : ""));
  const able = {
    ...text("Can", "role", (/** @type {Contract.MembershipRole} */ role) => CAN[role]),
    class: "value",
  };
  return h(
    "div",
    pageHead(
      "Members",
      null,
      isOwner && [
        button("Add an auditor", audit),
        " ",
        button("Invite someone", invite, "primary"),
      ],
    ),
    asked.length > 0 &&
      tablePanel(
        "Requests of staff for access",
        beside("Open for 12 hours"),
        [
          { head: "Who", cell: (row) => [row.staff, fine(row.reason)], sort: (row) => row.staff },
          text("For", "hours", (hours) => `${hours} h`),
          state,
          age("Asked", "createdAt"),
          text("By", "decidedBy"),
          acts(
            (row) =>
              row.state === "open" &&
              mayAnswer && [
                button("Approve", () => approve(row), "primary small"),
                " ",
                button("Decline", () => decline(row), "quiet small"),
              ],
          ),
        ],
        asked,
      ),
    tablePanel(
      count(lasting.length, "member"),
      !isOwner &&
        beside(
          "Owners invite, change roles and remove. Access for a limited time is not marked for you.",
        ),
      [
        {
          head: "Email",
          cell: (row) => [row.email, row.email === who.email && [" ", badge("you", "info")]],
          sort: (row) => row.email,
        },
        { head: "Role", cell: roleOf, sort: (row) => row.role },
        able,
        isOwner && acts((row) => button("Remove", () => remove(row), "quiet small")),
      ],
      lasting,
      { label: "Members" },
    ),
    guests.length > 0 &&
      tablePanel(
        "Access for a limited time",
        beside("Staff of the service took it, or an owner gave it. It ends by itself."),
        [
          text("Email", "email"),
          able,
          {
            head: "Until",
            cell: (row) => [
              when(limited.get(row.email)?.ends),
              fine(ago(limited.get(row.email)?.ends)),
            ],
            class: "nowrap",
            sort: (row) => limited.get(row.email)?.ends ?? "",
          },
          {
            head: "Why",
            cell: (row) => limited.get(row.email)?.reason || "no reason was given",
            class: "value",
          },
          acts((row) => button("Remove", () => remove(row), "quiet small")),
        ],
        guests,
      ),
    auditors.length > 0 &&
      tablePanel(
        "Auditors",
        beside(`They ${AUDITS}`),
        [
          text("Email", "grantee"),
          text("Until", "expiresAt", (at) => (at ? when(at) : "no end date")),
          text("Added by", "grantedBy"),
          age("Added", "createdAt"),
          acts((row) => button("Remove", () => dismiss(row), "quiet small")),
        ],
        auditors,
        { label: "Auditors" },
      ),
    isOwner &&
      tablePanel(
        "Invitations",
        null,
        [
          text("Email", "email"),
          text("Role", "role", badge),
          state,
          age("Invited", "createdAt"),
          acts(
            (row) => row.state === "open" && button("Withdraw", () => withdraw(row), "quiet small"),
          ),
        ],
        invitations,
        { none: "No invitation is open. An invited person accepts after signing in." },
      ),
  );
}

/** @param {Contract.GrantList} found @param {string} tenant the grants of auditors */
const auditorsOf = (found, tenant) =>
  found._links.items.filter(
    ({ resourceId, permissions }) =>
      resourceId === tenant && String([...permissions].sort()) === String(AUDITOR),
  );

/**
 * @param {string} tenant why and until when members have access for a limited time, by email: the
 *   newest events say so
 */
async function limitedAccess(tenant) {
  const read = (/** @type {"membership.added" | "membership.changed"} */ kind) =>
    call("GET /config/events", { tenant, kind, limit: 200 });
  const found = await Promise.all([read("membership.added"), read("membership.changed")]);
  const events = found.flatMap((page) => page.events).sort((x, y) => x.at.localeCompare(y.at));
  const until = new Map(
    events.map((event) => [
      event.subject,
      { ends: String(event.after?.endsAt ?? ""), reason: event.reason },
    ]),
  );
  return new Map([...until].filter(([, { ends }]) => Date.parse(ends) > Date.now()));
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
    await Promise.all(
      emails.splice(0, AT_ONCE).map(async (email) => {
        const all = await call("GET /users/{email}/tenants", { email });
        const here = all.find((one) => one.tenantId === tenant);
        if (here) members.push({ email, role: here.role, all });
      }),
    );
  }
  return members.sort((x, y) => x.email.localeCompare(y.email));
}
