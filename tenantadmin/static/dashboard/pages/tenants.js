// The tenants of the user.

import { call } from "../api.js";
import { count } from "../format.js";
import { form } from "../forms.js";
import { forgetPerson, listedDeleted, person, tenants } from "../people.js";
import { a, acts, age, ask, badge, beside, button, empty, go, h, input, notify, pageHead, panel, tablePanel, text, to } from "../ui.js";
import { waitingInvitations } from "./invitations.js";

/** @type {Show} */
export async function show({ reload }) {
  const [who, all, waiting] = await Promise.all([person(), tenants(), waitingInvitations(reload)]);
  return h("div", pageHead("Tenants"),
    waiting,
    all.length ? tablePanel(count(all.length, "tenant"), null, [
      { head: "Tenant", cell: (row) => a(to(row.id, "overview"), h("strong", row.name)), sort: (row) => row.name },
      text("Your role", "role", (role) => badge(role, role === "owner" ? "info" : "")),
      { head: "Rules", cell: (row) => a(to(row.id, "rules"), "Rules") }, age("Last change", "modifiedAt"),
    ], all, { label: "Tenants" })
      : empty("You are in no tenant yet.", h("p.muted", "Ask an owner to invite your address, ", h("strong", who.email), ".")),
    listedDeleted().length > 0 && who.role !== "guest" && tablePanel("Deleted", beside("An owner can restore a tenant for 30 days."), [
      text("Tenant", "name"), age("Deleted", "modifiedAt"), acts((row) => button("Restore", () => restore(row, reload), "small")),
    ], listedDeleted(), { label: "Deleted tenants" }),
    who.role === "admin" && byId());
}

/** @type {(tenant: Tenant, reload: () => void) => Promise<boolean>} */
const restore = ({ id, name }, reload) => ask({
  title: `Restore ${name}?`, action: "Restore", body: "Its rules, configuration, host names and members come back. The Gateway starts with an empty cache.",
  run: () => call("POST /config/tenants/{tenant}/restore", { tenant: id }),
  then: () => {
    forgetPerson();
    notify(`${name} is back.`);
    reload();
  },
});

/** A platform admin reads any tenant, but lists only its own. */
function byId() {
  const id = input("tenant", "", { pattern: "[0-9a-fA-F-]{36}", required: true, placeholder: "Tenant id", "aria-label": "Tenant id" });
  return panel("Any tenant", null, form(".row.pad", () => go(to(id.value.trim().toLowerCase(), "overview")), id, h("button.button", "Open")));
}
