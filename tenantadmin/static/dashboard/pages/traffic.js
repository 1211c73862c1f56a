// The requests of the log, and when they were. A row opens what the rules did with it, and why.

import { call } from "../api.js";
import { emptyDay, readActivity } from "../days.js";
import * as f from "../format.js";
import { filters } from "../forms.js";
import { daysOf, histogram } from "../histogram.js";
import { readRules } from "../rulenames.js";
import { MISSES, status, statusChoices } from "../statuses.js";
import {
  a,
  beside,
  empty,
  facts,
  field,
  fill,
  h,
  input,
  nextOf,
  pageHead,
  panel,
  select,
  to,
} from "../ui.js";

/** @typedef {Contract.LoggedTraffic} Row */

const FILTERS = ["status", "rule", "program", "user", "statement", "queryHash", "minMs"];
/** The longest `statement` that the service takes. */
const LONGEST = 1000;

const SORTS = /** @type {const} */ ({
  "": "newest first",
  timestamp: "oldest first",
  "-responseTimeMs": "slowest first",
  "-warehouseExecutionTimeMs": "longest in the warehouse first",
  "-responseSize": "largest first",
});

/** @type {Show} */
export async function show(context) {
  const { tenant, query, signal } = context;
  const today = f.today();
  /** @type {Texts} */
  const chosen = { from: f.addDays(today, -6), to: today, ...Object.fromEntries(query) };
  const [rules, page] = await Promise.all([
    readRules(tenant),
    call(
      "GET /tenants/{tenant}/requests",
      { tenant, .../** @type {any} */ (chosen), compare: undefined },
      { signal },
    ),
  ]);
  const cursor = nextOf(page);
  const next = cursor && to(tenant, "traffic", { ...chosen, cursor });
  const head = (/** @type {string} */ name, /** @type {keyof typeof SORTS} */ sort) =>
    h(
      "a",
      { href: to(tenant, "traffic", { ...chosen, cursor: "", sort }), title: `${SORTS[sort]}` },
      name,
    );
  const isFiltered = FILTERS.some((name) => chosen[name]);
  return h(
    "div",
    pageHead(
      "Requests",
      `All log entries, ${SORTS[/** @type {keyof typeof SORTS} */ (chosen.sort ?? "")] ?? SORTS[""]}. Days are in UTC, times in your zone.`,
      a(to(tenant, "sql", { sql: page.sql }), "The same rows in SQL"),
    ),
    filters(
      (given) => to(tenant, "traffic", { ...given, ...kept(chosen, given) }),
      fields(chosen, rules),
    ),
    !chosen.cursor && histogram(context, chosen),
    page.missReasons &&
      panel(
        "Why they were misses",
        null,
        facts(
          page.missReasons.map((one) => [f.number(one.requests), one.text]),
          ".pad",
        ),
      ),
    page.requests.length
      ? panel(
          chosen.cursor ? "More requests" : "Requests",
          [
            chosen.cursor && a(to(tenant, "traffic", { ...chosen, cursor: "" }), "First page"),
            next && a(next, "Next page"),
          ],
          h(
            "div.request-heads",
            head("When", ""),
            ["Status", "Statement", "Rule", "User"].map((name) => h("span", name)),
            head("Response", "-responseTimeMs"),
          ),
          page.requests.map((row) => request(tenant, row, rules)),
          next && h("p.more", h("a.button", { href: next }, "Next page")),
        )
      : isFiltered || chosen.cursor
        ? empty("No request fits.", h("p", a(to(tenant, "traffic"), "Without filters")))
        : emptyDay(
            tenant,
            "There are no requests in these days.",
            (await readActivity(tenant)).lastDay,
            (day) => to(tenant, "traffic", { from: day, to: day }),
            "Each request of the Gateway stands here about a minute after it.",
          ),
  );
}

/**
 * @param {Texts} chosen
 * @param {Texts} given by the form, which has days alone
 * @returns {Texts} what stays: the comparison, and times whose days stay
 */
function kept({ from, to: until, compare = "" }, given) {
  const [first, last] = daysOf({ from, to: until });
  const isSame = given.from === first && given.to === last;
  return isSame ? { from, to: until, compare } : { compare };
}

/** @param {Texts} chosen @param {Rules} rules */
function fields(chosen, rules) {
  const [first, last] = daysOf(chosen);
  const text = (/** @type {string} */ name, /** @type {Props} */ props) =>
    input(name, chosen[name], props);
  return [
    field("From", input("from", first, { type: "date", required: true })),
    field("To", input("to", last, { type: "date", required: true })),
    field("Status", select("status", statusChoices, chosen.status ?? "")),
    field("Rule", rules.choice("rule", chosen.rule)),
    field("Program", text("program", { type: "search", maxlength: LONGEST })),
    field("User", text("user")),
    field("Part of the statement", text("statement", { maxlength: LONGEST })),
    field("At least ms", text("minMs", { type: "number", min: 0 })),
    field("Order", select("sort", Object.entries(SORTS), chosen.sort ?? "")),
    chosen.queryHash && field("Hash of the query", text("queryHash")),
  ];
}

/** @param {string} tenant @param {Row} row @param {Rules} rules */
function request(tenant, row, rules) {
  const body = h("div.rule-more");
  const element = h(
    "details.request",
    h(
      "summary",
      h("span.nowrap", { title: f.inBothZones(row.at) }, row.at ? f.when(row.at) : row.day),
      h(
        "span",
        status(row.cacheStatus ?? "none"),
        row.missReason && [" ", beside(MISSES[row.missReason])],
      ),
      h("span.sql.clip", row.statement ?? f.NONE),
      h(
        "span.wide-only.clip",
        { title: row.matchedRule },
        rules.name(row.matchedRule ?? "no rule"),
      ),
      h("span.wide-only.clip", row.userName ?? f.NONE),
      h("span.wide-only.num", f.duration(row.responseTimeMs)),
    ),
    body,
  );
  element.addEventListener("toggle", () => open(tenant, row, body), { once: true });
  return element;
}

/** @param {string} tenant @param {Row} row @param {HTMLElement} body */
function open(tenant, { queryHash, statement, logId, day }, body) {
  const same = queryHash
    ? { queryHash }
    : statement
      ? { statement: statement.slice(0, LONGEST) }
      : null;
  const acts = h(
    "div.row",
    same && h("a.button", { href: to(tenant, "traffic", same) }, "All requests of this statement"),
    logId && a(to(tenant, "explain", { logId, day }), "Link to this request"),
  );
  if (!logId)
    return fill(
      body,
      h("p.sql", statement),
      h("p.muted", "Without a logId, rules cannot be traced."),
      acts,
    );
  const output = h("div");
  fill(body, acts, output);
  import("./explain.js").then(
    ({ explain }) => explain(tenant, { logId, day }, output),
    (error) => fill(output, error.message),
  );
}
