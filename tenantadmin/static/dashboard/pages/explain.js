// Why the rules did with a request what they did: one from the log, or an invented one.

import { call } from "../api.js";
import { fill, h } from "../dom.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { replaceAddress, to } from "../router.js";
import { a, badge, button, empty, failure, field, input, panel, skeleton, tabs } from "../ui.js";
import { ACTION } from "./rules.js";
import { STATUS } from "./statements.js";

/** @type {Record<string, [string, string]>} */
const OUTCOME = { decided: ["decided", "good"], "matched-later": ["would match, but later", "info"], "not-matched": ["does not match", ""], disabled: ["off", ""] };

const INVENTED = { standardizedSql: "SELECT * FROM sales.orders WHERE id = ?", statementType: "SELECT", tables: ["sales.orders"], isReadOnly: true, userName: "ana" };

/** @type {import("../router.js").Show} */
export async function show(context) {
  const { tenant, query } = context;
  const mayRead = can(tenant, "member");
  const isLogged = mayRead && query.get("kind") !== "request";
  return h("div", null,
    h("header", { class: "page-head" }, h("div", null, h("h1", null, "Explain"), h("p", { class: "muted" }, "Which rule decides, what the others lack, and why a request was a miss."))),
    mayRead && tabs([[to(tenant, "explain"), "A request of the log", isLogged], [to(tenant, "explain", { kind: "request" }), "An invented request", !isLogged]]),
    isLogged ? logged(context) : invented(tenant));
}

/** @param {import("../router.js").Context} context */
function logged({ tenant, query }) {
  const day = input("day", query.get("day") ?? "", { type: "date" });
  const logId = input("logId", query.get("logId") ?? "", { required: true, placeholder: "logId" });
  const output = h("div", { "aria-live": "polite" });
  const run = async (/** @type {Event | null} */ event) => {
    event?.preventDefault();
    replaceAddress(to(tenant, "explain", { logId: logId.value.trim(), day: day.value }));
    fill(output, skeleton(3));
    try {
      const answer = await call("POST /tenants/{tenant}/explain", { tenant, body: { logId: logId.value.trim(), day: day.value || undefined } });
      fill(output, explanation(tenant, answer));
    } catch (error) {
      fill(output, failure(error));
    }
  };
  if (logId.value) run(null);
  else fill(output, empty("Give the logId of a request.", h("p", { class: "muted" }, "Or find it among the ", a(to(tenant, "traffic"), "requests"), ".")));
  return h("div", null, panel("Request", null, h("form", { class: "row pad", onsubmit: run }, h("label", { class: "row" }, "logId", logId),
    h("label", { class: "row" }, "Day, if known", day), h("button", { class: "button primary" }, "Explain"))), output);
}

/** @param {string} tenant */
function invented(tenant) {
  const text = /** @type {HTMLTextAreaElement} */ (h("textarea", { rows: 9, class: "mono", spellcheck: "false", value: JSON.stringify(INVENTED, null, 2) }));
  const output = h("div", { "aria-live": "polite" });
  const run = async () => {
    fill(output, skeleton(3));
    try {
      const answer = await call("POST /config/tenants/{tenant}/rules/explain", { tenant, body: { request: JSON.parse(text.value) } });
      fill(output, decision(tenant, answer.ruleset, answer.decision, answer.rules));
    } catch (error) {
      fill(output, failure(error));
    }
  };
  return h("div", null, panel("Request", null, h("div", { class: "pad" }, field("The columns that conditions test, as JSON", text), button("Explain", run, "primary"))), output);
}

/**
 * What the log says of a request, and what the rules do with it.
 * @param {string} tenant
 * @param {Contract.LoggedExplanationAnswer} answer
 */
export const explanation = (tenant, answer) => [request(tenant, answer), decision(tenant, answer.ruleset, answer.decision, answer.rules)];

/**
 * @param {string} tenant
 * @param {Contract.LoggedExplanationAnswer} answer
 */
function request(tenant, { logged: row, miss, disagreement, decision: { varyBy } }) {
  return panel("What the log says", row.cacheStatus && badge(row.cacheStatus, STATUS[row.cacheStatus]),
    h("dl", { class: "facts pad" },
      h("dt", null, "When"), h("dd", null, f.when(row.timestamp)),
      h("dt", null, "Rule"), h("dd", null, row.matchedRule ? a(to(tenant, "rules", { rule: row.matchedRule }), row.matchedRuleName ?? row.matchedRule) : "none"),
      row.cacheAgeSeconds !== null && [h("dt", null, "Age of the result"), h("dd", null, `${f.span(row.cacheAgeSeconds)} of ${f.span(row.cacheTtlSeconds)}`)],
      row.warehouseExecutionTimeMs !== null && [h("dt", null, "In the warehouse"), h("dd", null, f.duration(row.warehouseExecutionTimeMs))],
      row.cacheKey !== null && [h("dt", null, "Key"), h("dd", null, h("code", null, row.cacheKey), varyBy && Object.keys(varyBy).length > 0 && [", apart by ",
        ...Object.entries(varyBy).flatMap(([name, value]) => [h("code", null, `${name} = ${value ?? "null"}`), " "])])],
      h("dt", null, "Statement"), h("dd", { class: "sql" }, row.standardizedSql ?? f.NONE),
      miss && [h("dt", null, "Why a miss"), h("dd", null, whyMiss(tenant, miss))]),
    disagreement && h("div", { class: "pad" }, h("div", { class: "callout warn" },
      `The log names ${disagreement.logged ?? "no rule"}; these rules give ${disagreement.traced ?? "none"}.`)));
}

/**
 * @param {string} tenant
 * @param {Contract.MissExplanation} miss
 */
function whyMiss(tenant, miss) {
  const guessed = miss.reconstructed ? " (the log gives no reason; this one is reconstructed)" : "";
  const stored = miss.lastStore?.at ? ` It was last stored ${f.when(miss.lastStore.at)}.` : "";
  if (miss.reason === "restart") {
    return [`The cache was left behind`, miss.revision ? [" by ", a(to(tenant, "history", { kind: "rules", seq: miss.revision.seq }), `revision #${miss.revision.seq}`)] : ", because the version of cache keys rose", `.${stored}${guessed}`];
  }
  if (miss.reason === "ttl-expired") return `The result expired ${f.when(miss.expiredAt)}: its TTL was ${f.span(miss.ttlSeconds)}, and ${f.span(miss.ttlNeeded)} would have been a hit.${stored}${guessed}`;
  if (miss.reason === "invalidation-marker") return [`An invalidation of ${f.when(miss.marker?.invalidatedAt)} ended the result: marker `, h("code", null, miss.marker?.markerId ?? ""), `.${guessed}`];
  if (miss.reason === "not-stored") return `The last execution failed, so nothing was stored.${guessed}`;
  const { nearest } = miss;
  const near = nearest?.at ? [" The same statement with other values was stored ", nearest.logId ? a(to(tenant, "explain", { logId: nearest.logId }), f.when(nearest.at)) : f.when(nearest.at), ...(nearest.parameterValues ? [": ", h("code", null, nearest.parameterValues)] : []), "."] : [];
  return ["Nothing was stored for it in the last days.", ...near, guessed];
}

/**
 * @param {string} tenant
 * @param {Contract.ChosenRuleset} ruleset
 * @param {Contract.ExplainedDecision} chosen
 * @param {Contract.ExplainedRule[]} rules
 */
function decision(tenant, ruleset, chosen, rules) {
  const by = chosen.ruleId ? [badge(chosen.action ?? "", ACTION[chosen.action ?? ""]), " ", a(to(tenant, "rules", { rule: chosen.ruleId }), chosen.ruleId), " decides: ", chosen.statuses.join(" or ")]
    : ["No rule matches: ", chosen.statuses.join(" or ")];
  return panel("Rules", h("span", { class: "muted small" }, `revision #${ruleset.seq}${ruleset.inForce ? "" : ", not the one of that moment"}`),
    h("p", { class: "pad" }, by, chosen.fired.map((fired) => [`; fires ${fired.ruleId} for ${fired.targets.join(", ")}`])),
    h("ul", { class: "findings" }, rules.map((rule) => h("li", { class: "pad" },
      h("div", { class: "row" }, h("span", { class: "muted" }, rule.position + 1), h("strong", null, rule.name || rule.ruleId), badge(...OUTCOME[rule.outcome]),
        rule.distance ? h("span", { class: "muted small" }, `${rule.distance} ${rule.distance === 1 ? "test" : "tests"} away`) : null),
      rule.failed.map((test) => h("div", { class: "small" }, h("code", null, test.key), ` ${test.negated ? "must not be" : "must be"} `, h("code", null, `${test.operator} ${JSON.stringify(test.operand)}`),
        ", is ", h("code", null, JSON.stringify(test.value ?? null))))))));
}
