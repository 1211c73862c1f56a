// Reports of a few days: results that were older than their tables, and results that depend on who
// asks.

import { call } from "../api.js";
import { emptyDay, readActivity } from "../days.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { readRules } from "../rulenames.js";
import { spelled } from "../spellings.js";
import {
  a,
  badge,
  code,
  fine,
  go,
  h,
  input,
  num,
  pageHead,
  tablePanel,
  tabs,
  text,
  tiles,
  to,
} from "../ui.js";
import { closing } from "../verdict.js";

/** @type {Show} */
export async function show({ tenant, query }) {
  const last = query.get("to") ?? (await readActivity(tenant)).lastDay ?? f.yesterday();
  const from = query.get("from") ?? f.addDays(last, -6);
  const mayUsers = can(tenant, "users");
  const kind = mayUsers && query.get("kind") === "leaks" ? "leaks" : "stale";
  const again = () =>
    first.value &&
    until.value &&
    go(to(tenant, "reports", { kind, from: first.value, to: until.value }));
  const [first, until] = [
    ["First day", from],
    ["Last day", last],
  ].map(([label, day]) =>
    input("day", day, { type: "date", "aria-label": label, onchange: again }),
  );
  const link = (/** @type {string} */ name) =>
    to(tenant, "reports", { kind: name, from, to: last });
  const { days, lastDay } = await readActivity(tenant, from, last);
  return h(
    "div",
    pageHead("Stale risk and leaks", "From the log, at most 31 days (UTC).", first, "to", until),
    mayUsers &&
      tabs([
        [link("stale"), "Stale results", kind === "stale"],
        [link("leaks"), "Results that depend on the user", kind === "leaks"],
      ]),
    !days.length
      ? emptyDay(tenant, "There are no requests in these days.", lastDay, (day) =>
          to(tenant, "reports", { kind, from: f.addDays(day, -6), to: day }),
        )
      : await (kind === "stale" ? stale : leaks)(tenant, from, last),
  );
}

/** @param {string} tenant @param {string} from @param {string} last */
async function stale(tenant, from, last) {
  const [rules, report] = await Promise.all([
    readRules(tenant),
    call("GET /tenants/{tenant}/reports/stale", { tenant, from, to: last }),
  ]);
  return [
    tiles([
      ["Hits", f.number(report.hits)],
      ["At risk", f.number(report.atRisk), f.ratio(report.atRisk, report.hits)],
      ["Rules with such hits", f.number(report.rules.filter((rule) => rule.atRisk).length)],
    ]),
    tablePanel(
      "Served although a table had changed",
      null,
      [
        rules.column(),
        text("Table", "table", (name) => [
          h("code", name),
          can(tenant, "cache") && [
            " ",
            a(to(tenant, "invalidate", { tables: name }), "Invalidate"),
          ],
        ]),
        rules.column("Changed by", "changedBy"),
        num("Hits", "hits"),
        num("Longest", "longestMs", f.duration),
        {
          head: "Last",
          cell: (row) =>
            row.example && can(tenant, "member")
              ? a(
                  to(tenant, "explain", {
                    logId: row.example,
                    day: f.isoDay(new Date(row.lastAt)),
                  }),
                  f.when(row.lastAt),
                )
              : f.when(row.lastAt),
          sort: (row) => row.lastAt,
        },
      ],
      report.findings,
      {
        label: "Stale results",
        sorted: 3,
        none: "No result was served after one of its tables had changed.",
      },
    ),
    fine(
      "Writes that do not pass the Gateway are not in the log: the true risk may be higher. Hits whose result has no age in the log are not counted.",
    ),
    spelled(report.spellings),
    sources(tenant, report.queries),
  ];
}

/** @param {string} tenant @param {string} from @param {string} last */
async function leaks(tenant, from, last) {
  const [rules, report] = await Promise.all([
    readRules(tenant),
    call("GET /tenants/{tenant}/reports/leaks", { tenant, from, to: last }),
  ]);
  const closed = closing(tenant, report);
  return [
    h(
      "div",
      { class: `callout ${closed ? "warn" : report.findings.length ? "bad" : "good"}` },
      h("p.strong", report.text, closed && ["; closed by ", closed], "."),
      fine(
        `Of ${f.count(report.keys, "cached result")}, ${f.number(report.sharedKeys)} went to several users: only results that depend on the user are a problem.`,
      ),
    ),
    report.findings.length > 0 &&
      tablePanel(
        "Served to several users although they depend on the user",
        null,
        [
          text("How sure", "grade", (grade) => badge(grade, grade === "certain" ? "bad" : "warn")),
          {
            ...text("Statement", "statement", (sql) => h("div.sql", sql ?? f.NONE)),
            class: "wide-cell",
          },
          rules.column(),
          {
            head: "Users",
            cell: (row) =>
              `${row.users.slice(0, 3).join(", ")}${row.userCount > 3 ? ` and ${row.userCount - 3} more` : ""}`,
          },
          num("Served", "served"),
        ],
        report.findings,
        { label: "Results that depend on the user", sorted: 4 },
      ),
    sources(tenant, report.queries),
  ];
}

/**
 * @type {(tenant: string, queries: {name: string, sql: string}[]) => Child[]} published statements,
 *   to run again
 */
export const statements = (tenant, queries) =>
  queries.map((one) =>
    h(
      "div",
      h(
        "div.row",
        h("h3", one.name),
        can(tenant, "member") && a(to(tenant, "sql", { sql: one.sql }), "Run it"),
      ),
      code(one.sql),
    ),
  );

/** @param {string} tenant @param {Contract.ReportQuery[]} queries */
export const sources = (tenant, queries) =>
  h(
    "details.panel",
    h("summary.panel-head", "Where the numbers come from"),
    h("div.pad.stack", statements(tenant, queries)),
  );
