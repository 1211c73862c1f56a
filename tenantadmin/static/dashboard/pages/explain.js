// Why the rules did with a request what they did: one from the log, or an invented one.

import { call } from "../api.js";
import { asSentence } from "../conditions.js";
import * as f from "../format.js";
import { form } from "../forms.js";
import { parseJson } from "../jsonlines.js";
import { can } from "../people.js";
import { ruleButton } from "../results.js";
import { nameIn } from "../rulenames.js";
import { meaning, status } from "../statuses.js";
import {
  a,
  area,
  badge,
  beside,
  button,
  facts,
  field,
  h,
  input,
  pageHead,
  panel,
  revisionLink,
  ruleLink,
  select,
  showIn,
  tablePanel,
  tabs,
  text,
  to,
} from "../ui.js";
import { ACTION } from "./rules.js";

/** @type {Record<string, [string, string]>} */
const OUTCOME = {
  decided: ["decides", "good"],
  "matched-later": ["matches, but comes later", "info"],
  "not-matched": ["does not match", ""],
  disabled: ["off", ""],
};

const REVISION = "revision";

/**
 * The rules that decide.
 * @typedef {{field: HTMLElement, value: () => {seq?: number, draftId?: string}}} Chosen
 */

const INVENTED = {
  standardizedSql: "SELECT * FROM sales.orders WHERE id = ?",
  statementType: "SELECT",
  tables: ["sales.orders"],
  isReadOnly: true,
  userName: "ana",
};

/** @type {Show} */
export async function show(context) {
  const { tenant, query } = context;
  const mayRead = can(tenant, "member");
  const isLogged = mayRead && query.get("kind") !== "request";
  const { drafts } = await call("GET /config/tenants/{tenant}/rules/drafts", { tenant });
  const by = select(
    "by",
    {
      "": isLogged ? "the rules in force then" : "the rules in force",
      [REVISION]: "the revision",
      ...Object.fromEntries(drafts.map((one) => [one.draftId, `draft: ${one.name || "unnamed"}`])),
    },
    "",
    { onchange: () => (seq.hidden = by.value !== REVISION) },
  );
  const seq = input("seq", "", { type: "number", min: 0, hidden: true, "aria-label": "Revision" });
  /** @type {Chosen} */
  const chosen = {
    field: h("label.row", "By", by, seq),
    value: () =>
      by.value === REVISION ? { seq: Number(seq.value) } : by.value ? { draftId: by.value } : {},
  };
  return h(
    "div",
    pageHead("Explain", "Which rule decides, what the others lack, and why a request was a miss."),
    mayRead &&
      tabs([
        [to(tenant, "explain"), "A logged request", isLogged],
        [to(tenant, "explain", { kind: "request" }), "A request that you describe", !isLogged],
      ]),
    isLogged ? logged(context, chosen) : invented(tenant, chosen),
  );
}

/** @param {Context} context @param {Chosen} chosen */
function logged({ tenant, query }, chosen) {
  const day = input("day", query.get("day"), { type: "date" });
  const logId = input("logId", query.get("logId"), { required: true, placeholder: "6b14c72a-…" });
  const output = h("div", { "aria-live": "polite" });
  const run = () => {
    const body = { logId: logId.value.trim(), day: day.value || undefined };
    history.replaceState(null, "", to(tenant, "explain", body));
    explain(tenant, { ...body, ...chosen.value() }, output);
  };
  if (logId.value) run();
  else
    showIn(
      async () =>
        newest(
          tenant,
          await call("GET /tenants/{tenant}/requests", {
            tenant,
            from: f.addDays(f.today(), -6),
            to: f.today(),
            status: "MISS",
            limit: 10,
          }),
        ),
      output,
    );
  return h(
    "div",
    panel(
      "Request",
      null,
      form(
        ".row.pad",
        run,
        h("label.row", "Its id (logId)", logId),
        h("label.row", "Day, if known", day),
        chosen.field,
        h("button.button.primary", "Explain"),
      ),
    ),
    output,
  );
}

/** @param {string} tenant @param {Contract.Traffic} page requests to choose from */
const newest = (tenant, { requests }) =>
  tablePanel(
    "The newest misses",
    a(to(tenant, "traffic"), "All requests"),
    [
      {
        head: "When",
        cell: (row) => a(to(tenant, "explain", { logId: row.logId, day: row.day }), f.when(row.at)),
        class: "nowrap",
      },
      { ...text("Statement", "statement"), class: "sql clip" },
    ],
    requests,
    { none: "There are no misses in the last days." },
  );

/** @param {string} tenant @param {Chosen} chosen */
function invented(tenant, chosen) {
  const text = area("request", JSON.stringify(INVENTED, null, 2), { rows: 9 });
  const output = h("div", { "aria-live": "polite" });
  const run = () =>
    showIn(async () => {
      const answer = await call("POST /config/tenants/{tenant}/rules/explain", {
        tenant,
        body: { request: parseJson(text.value), ...chosen.value() },
      });
      return decision(tenant, answer.ruleset, answer.decision, answer.rules);
    }, output);
  return h(
    "div",
    panel(
      "Request",
      null,
      h(
        "div.pad",
        field("What conditions ask of a request, as JSON", text),
        h("div.row", chosen.field, button("Explain", run, "primary")),
      ),
    ),
    output,
  );
}

/**
 * @type {(tenant: string, body: Contract.ExplainLoggedRequest, output: Element) => Promise<void>}
 *   show what the rules did with a logged request
 */
export const explain = (tenant, body, output) =>
  showIn(async () => {
    const answer = await call("POST /tenants/{tenant}/explain", { tenant, body });
    return [
      request(tenant, answer),
      decision(tenant, answer.ruleset, answer.decision, answer.rules),
    ];
  }, output);

/** @param {string} tenant @param {Contract.LoggedExplanationAnswer} answer */
function request(tenant, { logged: row, miss, disagreement, rules, decision: { varyBy } }) {
  return panel(
    "What the log says",
    row.cacheStatus && status(row.cacheStatus),
    facts(
      [
        row.cacheStatus !== null && ["Status", meaning(row.cacheStatus)],
        row.cacheStatus === "ERROR" && [
          "Error",
          [row.statusCode, ", without text in the log. Query: ", h("code", row.queryId ?? f.NONE)],
        ],
        ["When", f.when(row.timestamp)],
        row.program && ["Program", row.program],
        ["Rule", ruleLink(tenant, row.matchedRule, row.matchedRuleName ?? row.matchedRule)],
        row.cacheAgeSeconds !== null && [
          "Age of the result",
          `${f.span(row.cacheAgeSeconds)} of ${f.span(row.cacheTtlSeconds)}`,
        ],
        row.warehouseExecutionTimeMs !== null && [
          "In the warehouse",
          f.duration(row.warehouseExecutionTimeMs),
        ],
        row.cacheKey !== null && [
          "Key",
          [
            h("code", row.cacheKey),
            varyBy &&
              Object.keys(varyBy).length > 0 && [
                ", apart by ",
                Object.entries(varyBy).map(([name, value]) => [
                  h("code", `${name} = ${value ?? "null"}`),
                  " ",
                ]),
              ],
          ],
        ],
        [
          "Statement",
          [h("div.sql", row.standardizedSql ?? f.NONE), ruleButton(tenant, row.tables)],
        ],
        miss && ["Why a miss", whyMiss(tenant, miss)],
      ],
      ".pad",
    ),
    disagreement &&
      h(
        "div.pad",
        h(
          "div.callout.warn",
          `The log names ${row.matchedRuleName ?? disagreement.logged ?? "no rule"}; these rules give ${nameIn(rules, disagreement.traced, "ruleId") ?? "none"}.`,
        ),
      ),
  );
}

/** @param {string} tenant @param {Contract.MissExplanation} miss */
function whyMiss(tenant, miss) {
  const { marker, nearest, revision } = miss;
  const at = (/** @type {Contract.EntryReference} */ it) =>
    it.logId ? a(to(tenant, "explain", { logId: it.logId }), f.when(it.at)) : f.when(it.at);
  return h(
    "span",
    miss.text,
    miss.lastStore && [
      " It was last stored ",
      at({ ...miss.lastStore, at: miss.storedAt ?? miss.lastStore.at }),
      ".",
    ],
    revision && [
      " ",
      revisionLink(tenant, revision.seq, `Revision ${revision.seq}`),
      " was published since.",
    ],
    marker && [` It was ${f.when(marker.invalidatedAt)}: marker `, h("code", marker.markerId), "."],
    nearest?.at && [
      " The same statement with other values was stored ",
      at(nearest),
      nearest.parameterValues && [": ", h("code", nearest.parameterValues)],
      ".",
    ],
    miss.reconstructed && " (Found from earlier requests.)",
  );
}

/**
 * @param {string} tenant
 * @param {Contract.ChosenRuleset} ruleset
 * @param {Contract.ExplainedDecision} chosen
 * @param {Contract.ExplainedRule[]} rules
 */
function decision(tenant, ruleset, chosen, rules) {
  const by = chosen.ruleId
    ? [
        badge(chosen.action ?? "", ACTION[chosen.action ?? ""]),
        " ",
        ruleLink(tenant, chosen.ruleId, nameIn(rules, chosen.ruleId, "ruleId")),
        " decides: ",
        chosen.statuses.join(" or "),
      ]
    : ["No rule matches: ", chosen.statuses.join(" or ")];
  const ordered = [...rules].sort((x, y) => x.position - y.position);
  const end = ordered.findIndex((rule) => rule.outcome === "decided") + 1 || ordered.length;
  const list = (/** @type {Contract.ExplainedRule[]} */ some) =>
    h("ul.findings.whole", some.map(one));
  return panel(
    "Rules",
    beside(
      `${ruleset.draftId ? "a draft of " : ""}revision ${ruleset.seq}${ruleset.inForce ? "" : ", because the history begins after the request"}`,
    ),
    h(
      "p.pad",
      by,
      chosen.fired.map((fired) => [
        `; fires ${nameIn(rules, fired.ruleId, "ruleId")} for ${fired.targets.map((id) => nameIn(rules, id, "ruleId")).join(", ")}`,
      ]),
    ),
    h(
      "p.pad.muted.small",
      "Rules are asked in their order. The first that is on and matches decides.",
    ),
    list(ordered.slice(0, end)),
    end < ordered.length &&
      h(
        "details.pad",
        h(
          "summary.muted.small",
          `${f.count(ordered.length - end, "rule")} behind it, which ${ordered.length - end === 1 ? "decides" : "decide"} nothing here`,
        ),
        list(ordered.slice(end)),
      ),
  );
}

/** @param {any} value of a request, in words where JSON has signs for it */
const said = (value) =>
  value == null
    ? "nothing"
    : Array.isArray(value)
      ? value.join(", ") || "nothing"
      : typeof value === "boolean"
        ? value
          ? "yes"
          : "no"
        : JSON.stringify(value);

/** @param {Contract.ExplainedRule} rule a rule, and what keeps it from matching */
const one = (rule) =>
  h(
    "li.pad",
    h(
      "div.row",
      h("span.muted", rule.position + 1),
      h("strong", { title: rule.ruleId }, rule.name || rule.ruleId),
      badge(...OUTCOME[rule.outcome]),
      rule.distance ? beside(`${f.count(rule.distance, "condition")} not met`) : null,
    ),
    rule.failed.map((test) =>
      h(
        "div.small",
        test.negated ? "must not be: " : "needs: ",
        h(
          "code",
          asSentence({
            [test.key]:
              typeof test.operand === "boolean" ? test.operand : { [test.operator]: test.operand },
          }),
        ),
        "; the request has ",
        h("code", said(test.value)),
      ),
    ),
  );
