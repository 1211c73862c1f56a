// Invitations into tenants that wait for the user's answer.

import { call } from "../api.js";
import { forgetPerson, person } from "../people.js";
import {
  acts,
  age,
  badge,
  button,
  empty,
  fine,
  h,
  notify,
  pageHead,
  tablePanel,
  text,
  to,
} from "../ui.js";

/** @type {Show} */
export async function show(context) {
  const [who, waiting] = await Promise.all([person(), waitingInvitations(context)]);
  return h(
    "div",
    pageHead("Invitations"),
    waiting ??
      empty(
        "No invitation waits for you.",
        h(
          "p.muted",
          "Invitations to ",
          h("strong", who.email),
          " are shown here. They are open for 14 days.",
        ),
      ),
  );
}

/** @param {Context} context the panel of the user's open invitations, or null if there is none */
export async function waitingInvitations({ reload, go }) {
  const { invitations } = await call("GET /users/{email}/invitations", { email: "me" });
  if (!invitations.length) return null;
  const accept = async (/** @type {Contract.Invitation} */ one) => {
    await call("POST /users/{email}/invitations/{invitation}/accept", {
      email: "me",
      invitation: one.id,
    });
    forgetPerson();
    notify(`You are ${one.role} of ${one.tenantName} now.`);
    go(to(one.tenantId, "overview"));
  };
  const decline = async (/** @type {Contract.Invitation} */ one) => {
    await call("POST /users/{email}/invitations/{invitation}/decline", {
      email: "me",
      invitation: one.id,
    });
    notify(`Declined: ${one.tenantName}.`);
    reload();
  };
  return tablePanel(
    "Invitations",
    null,
    [
      text("Tenant", "tenantName", (name) => h("strong", name)),
      text("Role", "role", (role) => badge(role, role === "owner" ? "info" : "")),
      {
        head: "From",
        cell: (row) => [row.invitedBy ?? "a deleted user", row.message && fine(row.message)],
      },
      age("Ends", "expiresAt"),
      acts((row) => [
        button("Accept", () => accept(row), "primary small"),
        " ",
        button("Decline", () => decline(row), "quiet small"),
      ]),
    ],
    invitations,
  );
}
