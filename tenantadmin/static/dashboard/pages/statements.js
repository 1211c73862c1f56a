// The statements of a day or a few, with what the cache did for each.

import { call } from "../api.js";
import { dayPicker, emptyDay, readActivity } from "../days.js";
import * as f from "../format.js";
import { filters } from "../forms.js";
import { can } from "../people.js";
import { ruleButton, run } from "../results.js";
import { readRules } from "../rulenames.js";
import { DEFINITIONS, meaning, status, statusChoices } from "../statuses.js";
import {
  a,
  beside,
  field,
  fill,
  fine,
  h,
  input,
  num,
  pageHead,
  panel,
  select,
  table,
  tabs,
  text,
  to,
} from "../ui.js";

/** @typedef {"warehouse" | "requests" | "response" | "hit-rate"} Order */

const LENGTHS = /** @type {const} */ ([
  [1, "Day"],
  [7, "7 days"],
  [28, "28 days"],
]);
/**
 * @type {Record<Order, [string, number]>} which statements come first, and the column that the
 *   table sorts by
 */
const ORDERS = {
  warehouse: ["Most warehouse time", 4],
  requests: ["Most requests", 1],
  response: ["Slowest response", 3],
  "hit-rate": ["Lowest hit rate", -1],
};

/** @type {Show} */
export async function show({ tenant, query }) {
  const { lastDay } = await readActivity(tenant);
  /** @type {Texts} */
  const chosen = {
    day: lastDay ?? f.yesterday(),
    days: "1",
    order: "warehouse",
    ...Object.fromEntries(query),
  };
  const { day, days, statement, mainRule, program } = chosen;
  const order = /** @type {Order} */ (chosen.order in ORDERS ? chosen.order : "warehouse");
  const from = f.addDays(day, 1 - (Number(days) || 1));
  const at = (/** @type {Texts} */ changes) => to(tenant, "statements", { ...chosen, ...changes });
  const [rules, found] = await Promise.all([
    readRules(tenant),
    call("GET /tenants/{tenant}/statements", {
      tenant,
      from,
      to: day,
      statement,
      mainRule,
      status: /** @type {any} */ (chosen.status),
      program,
      order,
    }),
  ]);
  const isFiltered = statement || mainRule || program || chosen.status;
  return h(
    "div",
    pageHead(
      "Statements",
      `${from === day ? "" : `${f.periodName(from)} to `}${f.periodName(day)}, in UTC.`,
      tabs(
        LENGTHS.map(([length, name]) => [
          at({ days: String(length) }),
          name,
          days === String(length),
        ]),
        "Length of the period",
        "segments",
      ),
      dayPicker(tenant, "statements", day, lastDay, chosen),
    ),
    filters(
      at,
      field(
        "Part of the statement",
        input("statement", statement, { type: "search", maxlength: 1000 }),
      ),
      field("Rule", rules.choice("mainRule", mainRule)),
      field("Program", input("program", program, { type: "search", maxlength: 1000 })),
      field("Last status", select("status", statusChoices, chosen.status ?? "")),
      field(
        "First",
        select(
          "order",
          Object.entries(ORDERS).map(([name, [title]]) => [name, title]),
          order,
        ),
      ),
    ),
    found.total || isFiltered
      ? panel(
          f.count(found.total, "statement"),
          program && beside("What this program sent. The numbers are of all programs."),
          table(columns(tenant, from, day, rules), found.statements, {
            label: "Statements",
            sorted: ORDERS[order][1],
            limit: 100,
            none: "No statement fits.",
          }),
          found.total > found.statements.length &&
            fine(
              `These are the first ${found.statements.length}. Filter by a part of the statement to see others.`,
            ),
        )
      : emptyDay(
          tenant,
          `There are no requests ${from === day ? "on" : "in the days up to"} ${f.periodName(day)}.`,
          lastDay,
          (last) => at({ day: last }),
        ),
  );
}

/**
 * @param {string} tenant
 * @param {string} from
 * @param {string} until
 * @param {Rules} rules
 * @returns {Column[]}
 */
const columns = (tenant, from, until, rules) => [
  {
    head: "Statement",
    cell: (row) => statement(tenant, from, until, row, rules),
    class: "wide-cell",
  },
  {
    head: "Requests",
    number: true,
    cell: (row) => [
      f.number(counted(row)),
      others(row) > 0 &&
        h(
          "div.muted.small",
          { title: "waited, failed, refused, or answered by the Gateway itself" },
          `${f.number(others(row))} not counted`,
        ),
    ],
    sort: counted,
  },
  { head: "Hit rate", number: true, cell: (row) => f.percent(rate(row)), sort: rate },
  num("Response", "averageResponseTime", f.duration),
  num("Warehouse", "warehouseExecutionTimeMs", f.duration),
  rules.column("Rule", "mainRule"),
  { ...text("Last status", "cacheStatus", (name) => name && status(name)), class: "nowrap" },
];

/** @param {Contract.StatementActivity} row */
const counted = (row) => row.hits + row.storedMisses + row.notCached;

/** @param {Contract.StatementActivity} row */
const others = (row) => row.requests - counted(row);

/** @param {Contract.StatementActivity} row */
const rate = (row) => (counted(row) ? row.hits / counted(row) : null);

/** So many users and programs of a statement are named. */
const NAMED = 3;

/**
 * @type
 *   {(tenant: string, from: string, until: string, row: Contract.StatementActivity, acts: Element,
 *   apart: Element) => Promise<HTMLElement>}
 *   say what the summaries do not have: tables, how many requests were neither hits nor misses, by
 *   status, and who asked with what
 */
async function look(tenant, from, until, { statement }, acts, apart) {
  const { rows } = await run(
    tenant,
    `WITH own AS (
  SELECT * FROM proxy_logs
  WHERE day BETWEEN '${from}' AND '${until}' AND standardizedSql = '${statement.replaceAll("'", "''")}')
SELECT 'status' AS what, cacheStatus AS name, count(*) AS requests, max(tables) AS tables,
  ${DEFINITIONS.requests} AS isRequest, arg_max(logId, timestamp) AS logId, arg_max(day, timestamp) AS day
FROM own GROUP BY 2
UNION ALL SELECT 'users', userName, count(*), NULL, NULL, NULL, NULL FROM own GROUP BY 2
UNION ALL SELECT 'programs', userAgent, count(*), NULL, NULL, NULL, NULL FROM own GROUP BY 2
ORDER BY 3 DESC`,
  );
  const of = (/** @type {string} */ what) => rows.filter((row) => row.what === what);
  const [last] = of("status");
  acts.prepend(ruleButton(tenant, rows.find((one) => one.tables)?.tables) || "");
  if (last?.logId)
    acts.append(a(to(tenant, "explain", { logId: last.logId, day: last.day }), "Why"));
  const other = of("status").filter(({ isRequest }) => !isRequest);
  if (other.length)
    fill(
      apart,
      "Not counted: ",
      other.map((one) => [f.number(Number(one.requests)), " ", status(one.name ?? "none"), " "]),
    );
  const most = (/** @type {string} */ what) => {
    const all = of(what);
    const named = all
      .slice(0, NAMED)
      .map((one) => `${one.name ?? "none named"} (${f.number(Number(one.requests))})`);
    const rest = all.length - named.length;
    return `${named.join(", ")}${rest > 0 ? ` and ${f.count(rest, "other")}` : ""}`;
  };
  return fine(`Users: ${most("users")}. Programs: ${most("programs")}.`);
}

/**
 * @type
 *   {(tenant: string, from: string, until: string, row: Contract.StatementActivity,
 *   rules: Rules) => HTMLElement}
 */
function statement(tenant, from, until, row, rules) {
  const shown = h("div.sql.two", row.statement);
  const details = h("details.statement", h("summary", shown));
  /** @type {HTMLElement | undefined} a row of the whole width */
  let more;
  details.addEventListener("toggle", () => {
    shown.classList.toggle("two");
    if (!more) {
      const acts = h(
        "p.row",
        a(
          to(tenant, "traffic", {
            from: f.addDays(until, -27),
            to: until,
            statement: row.statement.slice(0, 1000),
          }),
          "Its requests",
        ),
      );
      const apart = h("span", others(row) > 0 && `${f.number(others(row))} not counted.`);
      const isMember = can(tenant, "member");
      const who = h("div");
      if (isMember)
        look(tenant, from, until, row, acts, apart)
          .then((said) => fill(who, said))
          .catch(() => {});
      more = h(
        "tr",
        h(
          "td",
          { colspan: 7 },
          isMember && acts,
          fine(
            `${f.count(counted(row), "request")}: ${f.count(row.hits, "hit")}, ${f.number(row.storedMisses)} misses, ${f.number(row.notCached)} not cached. `,
            apart,
          ),
          fine(
            `First ${f.when(row.firstRequestTime)}, last ${f.when(row.lastRequestTime)} with ${f.bytes(row.responseSize)}, by `,
            rules.link(row.matchedRule),
            ". ",
            row.cacheStatus && meaning(row.cacheStatus),
          ),
          who,
        ),
      );
    }
    if (details.open) details.closest("tr")?.after(more);
    else more.remove();
  });
  return details;
}
