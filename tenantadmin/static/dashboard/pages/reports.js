// Reports of a few days: results that were older than their tables, and results that depend on who asks.

import { call } from "../api.js";
import { h } from "../dom.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { go, to } from "../router.js";
import { a, badge, empty, input, panel, table, tabs } from "../ui.js";
import { tiles } from "./overview.js";

/** @type {import("../router.js").Show} */
export async function show({ tenant, query }) {
  const last = query.get("to") ?? f.yesterday();
  const from = query.get("from") ?? f.addDays(last, -6);
  const mayUsers = can(tenant, "write");
  const kind = mayUsers && query.get("kind") === "leaks" ? "leaks" : "stale";
  const first = input("from", from, { type: "date", max: last, "aria-label": "First day" });
  const until = input("to", last, { type: "date", min: from, "aria-label": "Last day" });
  const again = () => first.value && until.value && go(to(tenant, "reports", { kind, from: first.value, to: until.value }).slice(1));
  first.addEventListener("change", again);
  until.addEventListener("change", again);
  const link = (/** @type {string} */ name) => to(tenant, "reports", { kind: name, from, to: last });
  return h("div", null,
    h("header", { class: "page-head" }, h("div", null, h("h1", null, "Stale risk and leaks"), h("p", { class: "muted" }, "From the log, at most 31 days (UTC).")), h("div", { class: "row" }, first, "to", until)),
    mayUsers && tabs([[link("stale"), "Stale results", kind === "stale"], [link("leaks"), "Results that depend on the user", kind === "leaks"]]),
    ...(kind === "stale" ? await stale(tenant, from, last) : await leaks(tenant, from, last)));
}

/**
 * @param {string} tenant
 * @param {string} from
 * @param {string} last
 */
async function stale(tenant, from, last) {
  const report = await call("GET /tenants/{tenant}/reports/stale", { tenant, from, to: last });
  return [
    tiles([["Hits", f.compact(report.hits)], ["At risk", f.number(report.atRisk), f.ratio(report.atRisk, report.hits)], ["Rules with such hits", f.number(report.rules.filter((rule) => rule.atRisk).length)]]),
    panel("Served although a table had changed", null, report.findings.length ? table([
      { head: "Rule", cell: (row) => rule(tenant, row.ruleId), sort: (row) => row.ruleId ?? "" },
      { head: "Table", cell: (row) => h("code", null, row.table), sort: (row) => row.table },
      { head: "Changed by", cell: (row) => rule(tenant, row.changedBy) },
      { head: "Hits", number: true, cell: (row) => f.number(row.hits), sort: (row) => row.hits },
      { head: "Longest", number: true, cell: (row) => f.duration(row.longestMs), sort: (row) => row.longestMs },
      { head: "Last", cell: (row) => (row.example && can(tenant, "member") ? a(to(tenant, "explain", { logId: row.example, day: f.isoDay(new Date(row.lastAt)) }), f.when(row.lastAt)) : f.when(row.lastAt)), sort: (row) => row.lastAt },
    ], report.findings, { label: "Stale results", sorted: 3 }) : empty("No result was served after one of its tables had changed.")),
    h("p", { class: "muted small" }, "Writes that do not pass the Gateway are not in the log: the true risk may be higher."),
    sources(tenant, report.queries),
  ];
}

/**
 * @param {string} tenant
 * @param {string} from
 * @param {string} last
 */
async function leaks(tenant, from, last) {
  const report = await call("GET /tenants/{tenant}/reports/leaks", { tenant, from, to: last });
  return [
    tiles([["Results", f.compact(report.keys)], ["Served to several users", f.compact(report.sharedKeys), f.ratio(report.sharedKeys, report.keys)], ["Findings", f.number(report.findings.length)]]),
    panel("Served to several users although they depend on the user", null, report.findings.length ? table([
      { head: "How sure", cell: (row) => badge(row.grade, row.grade === "certain" ? "bad" : "warn"), sort: (row) => row.grade },
      { head: "Statement", cell: (row) => h("div", { class: "sql" }, row.statement ?? f.NONE), class: "wide-cell" },
      { head: "Rule", cell: (row) => rule(tenant, row.ruleId) },
      { head: "Users", cell: (row) => `${row.users.slice(0, 3).join(", ")}${row.userCount > 3 ? ` and ${row.userCount - 3} more` : ""}` },
      { head: "Served", number: true, cell: (row) => f.number(row.served), sort: (row) => row.served },
    ], report.findings, { label: "Results that depend on the user", sorted: 4 }) : empty("No such result was served.")),
    sources(tenant, report.queries),
  ];
}

/**
 * @param {string} tenant
 * @param {string | null} id
 */
const rule = (tenant, id) => (id ? a(to(tenant, "rules", { rule: id }), id) : h("span", { class: "muted" }, "no rule"));

/**
 * @param {string} tenant
 * @param {Contract.ReportQuery[]} queries
 */
export const sources = (tenant, queries) => h("details", { class: "panel" }, h("summary", { class: "panel-head" }, "Where the numbers come from"),
  h("div", { class: "pad stack" }, queries.map((one) => h("div", null, h("div", { class: "row" }, h("h3", null, one.name), can(tenant, "member") && a(to(tenant, "sql", { sql: one.sql }), "Run it")),
    h("pre", { class: "code", tabindex: 0 }, one.sql)))));
