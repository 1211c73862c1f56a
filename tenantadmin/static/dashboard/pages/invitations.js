// Invitations into tenants that wait for the user's answer.

import { call } from "../api.js";
import { h } from "../dom.js";
import { ago } from "../format.js";
import { forgetPerson, person } from "../people.js";
import { go, to } from "../router.js";
import { badge, button, empty, notify, panel, table } from "../ui.js";

/** @type {import("../router.js").Show} */
export async function show({ reload }) {
  const [who, waiting] = await Promise.all([person(), waitingInvitations(reload)]);
  return h("div", null, h("header", { class: "page-head" }, h("h1", null, "Invitations")),
    waiting ?? empty("No invitation waits for you.", h("p", { class: "muted" }, "Invitations to ", h("strong", null, who.email), " are shown here. They are open for 14 days.")));
}

/**
 * The panel of the user's open invitations, or null if there is none.
 * @param {() => void} reload
 */
export async function waitingInvitations(reload) {
  const { invitations } = await call("GET /users/{email}/invitations", { email: "me" });
  if (!invitations.length) return null;
  const accept = async (/** @type {Contract.Invitation} */ one) => {
    await call("POST /users/{email}/invitations/{invitation}/accept", { email: "me", invitation: one.id });
    forgetPerson();
    notify(`You are ${one.role} of ${one.tenantName} now.`);
    go(to(one.tenantId, "overview").slice(1));
  };
  const decline = async (/** @type {Contract.Invitation} */ one) => {
    await call("POST /users/{email}/invitations/{invitation}/decline", { email: "me", invitation: one.id });
    notify(`Declined: ${one.tenantName}.`);
    reload();
  };
  return panel("Invitations", null, table([
    { head: "Tenant", cell: (row) => h("strong", null, row.tenantName), sort: (row) => row.tenantName },
    { head: "Role", cell: (row) => badge(row.role, row.role === "owner" ? "info" : "") },
    { head: "From", cell: (row) => [row.invitedBy ?? "a deleted user", row.message && h("p", { class: "muted small" }, row.message)] },
    { head: "Ends", cell: (row) => ago(row.expiresAt), class: "nowrap", sort: (row) => row.expiresAt },
    { head: "Answer", hidden: true, number: true, cell: (row) => [button("Accept", () => accept(row), "primary small"), " ", button("Decline", () => decline(row), "quiet small")] },
  ], invitations, { label: "Invitations" }));
}
