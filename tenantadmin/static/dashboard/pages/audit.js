// What was done to the tenant's people, rights, tokens, alerts, drafts and replays: who, when, and
// from where.

import { call, send } from "../api.js";
import { today, when } from "../format.js";
import { filters } from "../forms.js";
import { handOver } from "../results.js";
import { a, age, button, field, fine, h, input, pageHead, tablePanel, text, to } from "../ui.js";

/** @type {Show} */
export async function show({ tenant, query }) {
  const chosen = (/** @type {string} */ name) => query.get(name) ?? "";
  const asked = {
    tenant,
    actor: chosen("actor"),
    ...(chosen("from") && { from: `${chosen("from")}T00:00:00Z` }),
    ...(chosen("to") && { to: `${chosen("to")}T23:59:59.999Z` }),
  };
  const { events, _links } = await call("GET /config/events", {
    ...asked,
    limit: 50,
    cursor: chosen("cursor"),
  });
  const next = _links.next && new URLSearchParams(_links.next.href.split("?")[1]).get("cursor");
  const isCut = fine("");
  const save = async () => {
    const answer = await send("GET /config/events", asked, { accept: "text/csv; for=people" });
    handOver(await answer.blob(), `audit-${today()}.csv`);
    if (answer.headers.get("X-Truncated") === "true")
      isCut.textContent = "The file ends after 10,000 lines. Choose fewer days for the others.";
  };
  const at = (/** @type {Texts} */ filter) => to(tenant, "audit", filter);
  return h(
    "div",
    pageHead(
      "Audit",
      [
        "People, rights, tokens, alerts, drafts and replays. ",
        a(to(tenant, "history"), "History"),
        " has rules and configuration. Days are in UTC.",
      ],
      button("Download CSV", save),
    ),
    isCut,
    filters(
      at,
      field("From", input("from", chosen("from"), { type: "date" })),
      field("To", input("to", chosen("to"), { type: "date" })),
      field("Who", input("actor", chosen("actor"), { placeholder: "name@example.com" })),
    ),
    tablePanel(
      "Newest first",
      null,
      [
        { ...age("When", "at"), sort: undefined },
        text("Who", "actor", (who) => who || "somebody unknown"),
        {
          head: "What",
          cell: (row) => [
            row.text,
            row.changes && fine(row.changes),
            row.reason && fine(`Reason: ${row.reason}`),
          ],
          class: "value",
        },
        text("Address", "address"),
      ],
      events,
      { label: "Audit", none: "Nothing was done." },
    ),
    next && h("p", a(at({ ...Object.fromEntries(query), cursor: next }), "Older")),
  );
}
