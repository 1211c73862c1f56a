// The statements of a day, with what the cache did for each.

import { ApiError, call } from "../api.js";
import { fill, h } from "../dom.js";
import { nothingYet } from "../firsthour.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { go, to } from "../router.js";
import { a, badge, input, panel, table } from "../ui.js";

/** @typedef {Contract.QueryRecord} QueryRecord */

/** @type {Record<string, string>} */
export const STATUS = { HIT: "good", MISS: "warn", BYPASS: "", PASSTHROUGH: "", BLOCKED: "bad", ERROR: "bad", HOLD: "info", INVALIDATION_ERROR: "bad" };

/** @type {import("../router.js").Show} */
export async function show({ tenant, query }) {
  const day = query.get("day") ?? f.yesterday();
  const head = h("header", { class: "page-head" },
    h("div", null, h("h1", null, "Statements"), h("p", { class: "muted" }, `${f.periodName(day)} (UTC)`)), dayPicker(tenant, "statements", day));
  const [year, month, date] = day.split("-");
  try {
    const { queries } = await call("GET /tenants/{tenant}/summaries/{year}/{month}/{day}", { tenant, year, month, day: date });
    return h("div", null, head, list(tenant, day, queries));
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    return h("div", null, head, nothingYet(tenant, "first-request", `There are no requests on ${f.periodName(day)}.`, "Each statement of a day stands here, with its requests and hits."));
  }
}

/**
 * @param {string} tenant
 * @param {string} page
 * @param {string} day
 * @param {Record<string, string>} [query] what else the address has
 * @param {number} [step] days
 */
export function dayPicker(tenant, page, day, query = {}, step = 1) {
  const at = (/** @type {string} */ value) => to(tenant, page, { ...query, day: value });
  const picker = input("day", day, { type: "date", max: f.isoDay(new Date()), "aria-label": "Day" });
  picker.addEventListener("change", () => picker.value && go(at(picker.value).slice(1)));
  return h("div", { class: "row" }, picker, h("nav", { class: "segments", "aria-label": "Day" },
    h("a", { href: at(f.addDays(day, -step)), "aria-label": "Earlier" }, "‹"),
    h("a", { href: at(f.addDays(day, step)), "aria-label": "Later" }, "›")));
}

/**
 * @param {string} tenant
 * @param {string} day
 * @param {QueryRecord[]} queries
 */
function list(tenant, day, queries) {
  const box = h("div", null);
  const find = input("find", "", { type: "search", placeholder: "Find in statements and rules", "aria-label": "Find" });
  const draw = () => {
    const words = find.value.toLowerCase();
    const found = queries.filter((one) => `${one.statement} ${one.matchedRule ?? ""}`.toLowerCase().includes(words));
    fill(box, found.length ? table(columns(tenant, day), found, { label: "Statements", sorted: 1, limit: 100 })
      : h("p", { class: "pad muted" }, "No statement has this text."));
  };
  find.addEventListener("input", draw);
  draw();
  return panel(f.count(queries.length, "statement"), find, box);
}

/**
 * @param {string} tenant
 * @param {string} day
 * @returns {import("../ui.js").Column[]}
 */
function columns(tenant, day) {
  return [
    { head: "Statement", cell: (row) => statement(tenant, day, row), class: "wide-cell" },
    { head: "Requests", number: true, cell: (row) => f.number(row.count), sort: (row) => row.count },
    { head: "Hit rate", number: true, cell: (row) => f.ratio(row.cacheHits, row.cacheHits + row.cacheMisses),
      sort: (row) => row.cacheHits / (row.cacheHits + row.cacheMisses || 1) },
    { head: "Response", number: true, cell: (row) => f.duration(row.averageResponseTime), sort: (row) => row.averageResponseTime },
    { head: "Warehouse", number: true, cell: (row) => f.duration(row.warehouseExecutionTimeMs), sort: (row) => row.warehouseExecutionTimeMs },
    { head: "Rule", cell: (row) => (row.matchedRule ? a(to(tenant, "rules", { rule: row.matchedRule }), row.matchedRule) : f.NONE), sort: (row) => row.matchedRule ?? "" },
    { head: "Last", cell: (row) => row.cacheStatus && badge(row.cacheStatus, STATUS[row.cacheStatus]) },
  ];
}

/**
 * @param {string} tenant
 * @param {string} day
 * @param {QueryRecord} row
 */
function statement(tenant, day, row) {
  const text = h("div", { class: "sql two" }, row.statement);
  const details = h("details", { class: "statement" }, h("summary", null, text));
  details.addEventListener("toggle", () => text.classList.toggle("two"));
  details.addEventListener("toggle", () => {
    details.append(h("p", { class: "muted small" }, `First ${f.when(row.firstRequestTime)}, last ${f.when(row.lastRequestTime)} · ${f.number(row.cacheHits)} hits, ${f.number(row.cacheMisses)} misses · last result ${f.bytes(row.responseSize)}`),
      can(tenant, "member") ? h("p", { class: "small" }, a(to(tenant, "traffic", { from: day, to: day, statement: row.statement.slice(0, 1000) }), "Its requests")) : "");
  }, { once: true });
  return details;
}
