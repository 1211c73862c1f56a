// Which programs and users ask, what they cost, and what is saved for each.

import { call } from "./api.js";
import { addDays, duration, money, NONE, number, percent, saving } from "./format.js";
import { can } from "./people.js";
import { a, button, h, num, showIn, tablePanel, to } from "./ui.js";

/** The most days that a report reads. */
const MOST = 31;
/** The name of no caller. */
const REST = "";

/**
 * @param {string} tenant
 * @param {string} from
 * @param {string} last
 * @returns {Child} a panel that the page does not wait for; nothing of more days than a report reads
 */
export function callers(tenant, from, last) {
  if (addDays(from, MOST - 1) < last) return null;
  const box = h("div");
  const mayName = can(tenant, "member");
  const show = (/** @type {"programs" | "users"} */ by) =>
    showIn(async () => {
      const found = await call(`GET /tenants/{tenant}/activity/${by}`, { tenant, from, to: last });
      return panel(tenant, found, by, mayName && show);
    }, box);
  show("programs");
  return box;
}

/**
 * @param {string} tenant
 * @param {Contract.Callers} found
 * @param {"programs" | "users"} by
 * @param {((by: "programs" | "users") => any) | false} show
 */
function panel(tenant, { callers: rows, rest, currency, text, from, to: last }, by, show) {
  const key = by === "users" ? "user" : "program";
  const title = `By ${key}`;
  const amount = (/** @type {string | null} */ value) =>
    currency && value != null ? money(value, currency) : NONE;
  const where = (/** @type {Contract.Caller} */ { name }) =>
    name === null && key === "user"
      ? "none named"
      : show
        ? a(to(tenant, "traffic", { from, to: last, [key]: name ?? "none" }), name ?? "none named")
        : (name ?? "none named");
  const statements = (/** @type {Contract.Caller} */ { name }) =>
    a(
      to(tenant, "statements", {
        day: last,
        days: String(1 + (Date.parse(last) - Date.parse(from)) / 864e5),
        program: name ?? "none",
      }),
      "Statements",
    );
  const all = rest ? [...rows, { ...rest, name: REST }] : rows;
  const shown = tablePanel(
    title,
    show &&
      (by === "users"
        ? button("By program", () => show("programs"), "small")
        : button("By user", () => show("users"), "small")),
    [
      {
        head: key === "user" ? "User" : "Program",
        class: "value",
        cell: (row) => (row.name === REST ? "all others" : where(row)),
      },
      num("Requests", "requests"),
      {
        head: "Hit rate",
        number: true,
        cell: (row) => percent(row.hits / row.requests),
        sort: (row) => row.hits / row.requests,
      },
      num("Warehouse time", "warehouseMs", duration),
      !!currency && { ...num("Cost", "cost", amount), sort: (row) => Number(row.cost) },
      num("Time spared", "sparedMs", duration),
      !!currency && {
        ...num("Saved", "saved", (value) => saving(amount(value))),
        sort: (row) => Number(row.saved),
      },
      by === "programs" &&
        can(tenant, "statements") && {
          head: "Statements",
          hidden: true,
          cell: (row) => row.name !== REST && statements(row),
        },
    ],
    all,
    { label: title, sorted: 3, none: "Nobody asked." },
  );
  if (currency) shown.append(h("p.pad.muted.small", text));
  return shown;
}
