// The statements of a day, with what the cache did for each.

import { call, hasStatus } from "../api.js";
import { nothingYet } from "../firsthour.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { ruleButton } from "../results.js";
import { a, badge, fill, fine, go, h, input, num, pageHead, panel, ruleLink, stepper, table, text, to } from "../ui.js";

/** @typedef {Contract.QueryRecord} QueryRecord */

/** @type {Texts} */
export const STATUS = { HIT: "good", MISS: "warn", HOLD: "info", BYPASS: "", PASSTHROUGH: "", BLOCKED: "bad", ERROR: "bad", INVALIDATION_ERROR: "bad", AUTH_ERROR: "bad", SPOOFED: "", TELEMETRY: "", EXECUTOR: "" };

/** @param {string} name */
export const status = (name) => badge(name, STATUS[name]);

/** @type {Show} */
export async function show({ tenant, query }) {
  const day = query.get("day") ?? f.yesterday();
  const head = pageHead("Statements", `${f.periodName(day)} (UTC)`, dayPicker(tenant, "statements", day));
  const [year, month, date] = day.split("-");
  try {
    const { queries } = await call("GET /tenants/{tenant}/summaries/{year}/{month}/{day}", { tenant, year, month, day: date });
    return h("div", head, list(tenant, day, queries));
  } catch (error) {
    if (!hasStatus(error, 404)) throw error;
    return h("div", head, nothingYet(tenant, "first-request", `There are no requests on ${f.periodName(day)}.`, "Each statement of a day stands here, with its requests and hits."));
  }
}

/** @param {string} tenant @param {string} page @param {string} day @param {Record<string, string>} [query] of the address @param {number} [step] days */
export function dayPicker(tenant, page, day, query = {}, step = 1) {
  const at = (/** @type {string} */ value) => to(tenant, page, { ...query, day: value });
  const picker = input("day", day, { type: "date", max: f.today(), "aria-label": "Day", onchange: () => picker.value && go(at(picker.value)) });
  return [picker, stepper("Day", at, f.addDays(day, -step), f.addDays(day, step))];
}

/** @param {string} tenant @param {string} day @param {QueryRecord[]} queries */
function list(tenant, day, queries) {
  const box = h("div");
  const draw = () => {
    const words = find.value.toLowerCase();
    const found = queries.filter((one) => `${one.statement} ${one.matchedRule ?? ""}`.toLowerCase().includes(words));
    fill(box, table(columns(tenant, day), found, { label: "Statements", sorted: 1, limit: 100, none: "No statement has this text." }));
  };
  const find = input("find", "", { type: "search", placeholder: "Find in statements, rules", "aria-label": "Find", oninput: draw });
  draw();
  return panel(f.count(queries.length, "statement"), find, box);
}

/** @param {string} tenant @param {string} day @returns {Column[]} */
function columns(tenant, day) {
  return [
    { head: "Statement", cell: (row) => statement(tenant, day, row), class: "wide-cell" },
    num("Requests", "count"),
    { head: "Hit rate", number: true, cell: (row) => f.ratio(row.cacheHits, row.cacheHits + row.cacheMisses),
      sort: (row) => row.cacheHits / (row.cacheHits + row.cacheMisses || 1) },
    num("Response", "averageResponseTime", f.duration),
    num("Warehouse", "warehouseExecutionTimeMs", f.duration),
    text("Rule", "matchedRule", (id) => ruleLink(tenant, id)),
    text("Last", "cacheStatus", (name) => name && status(name)),
  ];
}

/** @param {string} tenant @param {string} day @param {QueryRecord} row */
function statement(tenant, day, row) {
  const shown = h("div.sql.two", row.statement);
  const details = h("details.statement", h("summary", shown));
  details.addEventListener("toggle", () => shown.classList.toggle("two"));
  details.addEventListener("toggle", () => {
    details.append(fine(`First ${f.when(row.firstRequestTime)}, last ${f.when(row.lastRequestTime)} · ${f.number(row.cacheHits)} hits, ${f.number(row.cacheMisses)} misses · last result ${f.bytes(row.responseSize)}`),
      can(tenant, "member") ? h("p.row.small", ruleButton(tenant, day, "standardizedSql", row.statement), a(to(tenant, "traffic", { from: day, to: day, statement: row.statement.slice(0, 1000) }), "Its requests")) : "");
  }, { once: true });
  return details;
}
