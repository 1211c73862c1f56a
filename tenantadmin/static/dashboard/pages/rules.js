// The rules in force, with the effect that each had this year.

import { ApiError, call } from "../api.js";
import { lastChanges } from "../blame.js";
import { asSentence } from "../conditions.js";
import { fill, h } from "../dom.js";
import { nothingYet } from "../firsthour.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { go, to } from "../router.js";
import { a, badge, button, failure, panel, skeleton } from "../ui.js";

/** @type {Record<string, string>} */
export const ACTION = { cache: "good", bypass: "", deny: "bad", invalidate: "warn" };

/** @type {import("../router.js").Show} */
export async function show({ tenant, query }) {
  const [ruleset, effects] = await Promise.all([call("GET /config/tenants/{tenant}/rules", { tenant }), effectsOf(tenant)]);
  /** @type {Promise<Contract.RulesBlame> | undefined} */
  let reading;
  const blame = () => (reading ??= call("GET /config/tenants/{tenant}/rules/blame", { tenant }));
  const edit = [button("Make a draft", () => makeDraft(tenant)), h("a", { class: "button primary", href: to(tenant, "rules/edit") }, "Edit")];
  return h("div", null,
    h("header", { class: "page-head" },
      h("div", null, h("h1", null, "Rules"), h("p", { class: "muted" }, `Revision ${ruleset.seq}, written ${f.ago(ruleset.modifiedAt)} · `,
        a(to(tenant, "history", { kind: "rules" }), "History"))),
      can(tenant, "write") && h("div", { class: "row" }, edit)),
    ruleset.rules.length ? panel("In order: the first enabled match decides", h("span", { class: "muted small" }, "Effect this year"),
      h("div", { class: "rule-heads", "aria-hidden": "true" }, ["", "Rule", "Action", "Requests", "Hit rate", "Time saved"].map((name, index) =>
        h("span", { class: index > 2 && "num" }, name))),
      ruleset.rules.map((rule, index) => row(tenant, rule, index, effects.get(rule.id), query.get("rule") === rule.id, blame)))
      : nothingYet(tenant, "first-rule", "There are no rules yet: every request passes through.", "Rules stand here in their order, each with its hits and the time that it saved."));
}

/** @param {string} tenant */
export async function makeDraft(tenant) {
  const draft = await call("POST /config/tenants/{tenant}/rules/drafts", { tenant, body: {} });
  go(`/t/${tenant}/drafts/${draft.draftId}`);
}

/**
 * What each rule had done this year; nothing where there are no summaries, or no right to read them.
 * @param {string} tenant
 */
async function effectsOf(tenant) {
  try {
    const { rules } = await call("GET /tenants/{tenant}/summaries/{year}/rules", { tenant, year: f.yesterday().slice(0, 4) });
    return new Map(rules.map((rule) => [rule.ruleId, rule]));
  } catch (error) {
    if (error instanceof ApiError && [403, 404].includes(error.status)) return new Map();
    throw error;
  }
}

/**
 * Whose result may serve whom.
 * @param {Contract.Rule} rule
 */
export function sharedBy(rule) {
  if (!rule.varyBy) return "everybody (the rule does not say)";
  return rule.varyBy.length ? ["requests with the same ", h("code", null, rule.varyBy.join(", "))] : "everybody";
}

/**
 * @param {string} tenant
 * @param {Contract.Rule} rule
 * @param {number} index
 * @param {Contract.RuleRecord | undefined} effect
 * @param {boolean} isOpen
 * @param {() => Promise<Contract.RulesBlame>} blame read once, when the first rule is opened
 */
function row(tenant, rule, index, effect, isOpen, blame) {
  const rate = rule.action === "cache" && effect && effect.totalExecutions ? effect.cacheHits / effect.totalExecutions : null;
  const changed = h("div", null);
  const open = () => {
    fill(changed, skeleton(1));
    blame().then((found) => fill(changed, lastChanges(tenant, rule.id, found)), (error) => fill(changed, failure(error)));
  };
  const element = h("details", { class: rule.enabled ? "rule" : "rule off", open: isOpen, id: `rule-${rule.id}` },
    h("summary", null,
      h("span", { class: "place" }, index + 1),
      h("div", null, h("div", { class: "rule-name" }, rule.name || rule.id), h("div", { class: "rule-text" }, asSentence(rule.conditions))),
      h("span", null, badge(rule.enabled ? rule.action : "off", rule.enabled ? ACTION[rule.action] : "")),
      h("span", { class: "num wide-only" }, effect && rule.action !== "deny" ? f.number(effect.totalExecutions) : f.NONE),
      h("span", { class: "num wide-only" }, rate !== null && h("progress", { class: "meter", max: 1, value: rate, "aria-label": "Hit rate" }), f.percent(rate)),
      h("span", { class: "num wide-only" }, effect && rule.action === "cache" ? f.duration(effect.warehouseTimeSavedMs) : f.NONE)),
    h("div", { class: "rule-more" },
      rule.description && h("p", null, rule.description),
      h("dl", { class: "facts" }, facts(rule, effect).map(([name, value]) => [h("dt", null, name), h("dd", null, value)])),
      h("pre", { class: "code", tabindex: 0, "aria-label": "Conditions" }, JSON.stringify(rule.conditions, null, 2)),
      rule.action === "cache" && can(tenant, "cache") && h("p", { class: "small" }, a(to(tenant, "invalidate", { rule: rule.id }), "Invalidate its results")),
      h("h3", null, "Last changed by"), changed));
  element.addEventListener("toggle", open, { once: true });
  return element;
}

/**
 * @param {Contract.Rule} rule
 * @param {Contract.RuleRecord | undefined} effect
 * @returns {[string, import("../dom.js").Child][]}
 */
function facts(rule, effect) {
  const known = /** @type {[string, import("../dom.js").Child][]} */ ([["Id", h("code", null, rule.id)]]);
  if (rule.action === "cache") known.push(["Fresh for", f.span(rule.ttlSeconds)]);
  if (rule.action === "cache") known.push(["Results are shared by", sharedBy(rule)]);
  if (rule.staleWhileRevalidate) known.push(["Then stale for", f.span(rule.staleWhileRevalidate)]);
  if (rule.invalidateRules?.length) known.push(["Invalidates", rule.invalidateRules.map((id) => [h("code", null, id), " "])]);
  if (rule.requireInvalidation) known.push(["If markers fail", "the statement is refused"]);
  if (effect) {
    known.push(["This year", `${f.count(effect.cacheHits, "hit")}, ${f.number(effect.cacheMisses)} misses, ${f.count(effect.queriesMatched, "statement")}`]);
  }
  return known;
}
