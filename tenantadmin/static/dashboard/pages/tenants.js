// The tenants of the user.

import { call } from "../api.js";
import { h } from "../dom.js";
import { ago, count } from "../format.js";
import { forgetPerson, listedDeleted, person, tenants } from "../people.js";
import { go, to } from "../router.js";
import { a, ask, badge, button, empty, input, notify, panel, table } from "../ui.js";
import { waitingInvitations } from "./invitations.js";

/** @type {import("../router.js").Show} */
export async function show({ reload }) {
  const [who, all, waiting] = await Promise.all([person(), tenants(), waitingInvitations(reload)]);
  const columns = [
    { head: "Tenant", cell: (/** @type {any} */ row) => a(to(row.id, "overview"), h("strong", null, row.name)),
      sort: (/** @type {any} */ row) => row.name },
    { head: "Your role", cell: (/** @type {any} */ row) => badge(row.role, row.role === "owner" ? "info" : ""),
      sort: (/** @type {any} */ row) => row.role },
    { head: "Rules", cell: (/** @type {any} */ row) => a(to(row.id, "rules"), "Rules") },
    { head: "Last change", number: true, cell: (/** @type {any} */ row) => ago(row.modifiedAt),
      sort: (/** @type {any} */ row) => Date.parse(row.modifiedAt) },
  ];
  return h("div", null, h("header", { class: "page-head" }, h("h1", null, "Tenants")),
    waiting,
    all.length ? panel(count(all.length, "tenant"), null, table(columns, all, { label: "Tenants" }))
      : empty("You are in no tenant yet.", h("p", { class: "muted" }, "Ask an owner to invite your address, ", h("strong", null, who.email), ".")),
    listedDeleted().length > 0 && who.role !== "guest" && panel("Deleted", h("span", { class: "muted small" }, "An owner can restore a tenant for 30 days."), table([
      { head: "Tenant", cell: (row) => row.name, sort: (row) => row.name },
      { head: "Deleted", cell: (row) => ago(row.modifiedAt), sort: (row) => row.modifiedAt },
      { head: "Actions", hidden: true, number: true, cell: (row) => button("Restore", () => restore(row, reload), "small") },
    ], listedDeleted(), { label: "Deleted tenants" })),
    who.role === "admin" && byId());
}

/**
 * @param {import("../people.js").Tenant} tenant
 * @param {() => void} reload
 */
async function restore({ id, name }, reload) {
  const done = await ask({ title: `Restore ${name}?`, action: "Restore", body: "Its rules, configuration, host names and members come back. The Gateway starts with an empty cache.",
    run: () => call("POST /config/tenants/{tenant}/restore", { tenant: id }) });
  if (!done) return;
  forgetPerson();
  notify(`${name} is back.`);
  reload();
}

/** A platform admin reads any tenant, but lists only its own. */
function byId() {
  const id = input("tenant", "", { pattern: "[0-9a-fA-F-]{36}", required: true, placeholder: "Tenant id", "aria-label": "Tenant id" });
  const open = (/** @type {Event} */ event) => {
    event.preventDefault();
    go(`/t/${id.value.trim().toLowerCase()}/overview`);
  };
  return panel("Any tenant", null, h("form", { class: "row pad", onsubmit: open }, id, h("button", { class: "button" }, "Open")));
}
