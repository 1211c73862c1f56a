// The rules in force, with the effect that each had this year.

import { call, hasStatus } from "../api.js";
import { lastChanges } from "../blame.js";
import { asSentence } from "../conditions.js";
import { nothingYet } from "../firsthour.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { a, badge, beside, button, code, facts, failure, fill, go, h, pageHead, panel, skeleton, to } from "../ui.js";

/** @type {Texts} */
export const ACTION = { cache: "good", bypass: "", deny: "bad", invalidate: "warn" };

/** @type {Show} */
export async function show({ tenant, query }) {
  const [ruleset, effects] = await Promise.all([call("GET /config/tenants/{tenant}/rules", { tenant }), effectsOf(tenant)]);
  /** @type {Promise<Contract.RulesBlame> | undefined} */
  let reading;
  const blame = () => (reading ??= call("GET /config/tenants/{tenant}/rules/blame", { tenant }));
  return h("div",
    pageHead("Rules", [`Revision ${ruleset.seq}, written ${f.ago(ruleset.modifiedAt)} · `, a(to(tenant, "history", { kind: "rules" }), "History")],
      can(tenant, "write") && [button("Make a draft", () => makeDraft(tenant)), h("a.button.primary", { href: to(tenant, "rules/edit") }, "Edit")]),
    ruleset.rules.length ? panel("In order: the first enabled match decides", beside("Effect this year"),
      h("div.rule-heads", { "aria-hidden": "true" }, ["", "Rule", "Action", "Requests", "Hit rate", "Time saved"].map((name, index) =>
        h("span", { class: index > 2 && "num" }, name))),
      ruleset.rules.map((rule, index) => row(tenant, rule, index, effects.get(rule.id), query.get("rule") === rule.id, blame)))
      : nothingYet(tenant, "first-rule", "There are no rules yet: every request passes through.", "Rules stand here in their order, each with its hits and the time that it saved."));
}

/** @param {string} tenant */
export async function makeDraft(tenant) {
  const draft = await call("POST /config/tenants/{tenant}/rules/drafts", { tenant, body: {} });
  go(to(tenant, `drafts/${draft.draftId}`));
}

/** @param {string} tenant what each rule had done this year; nothing where there are no summaries, or no right to read them */
async function effectsOf(tenant) {
  try {
    const { rules } = await call("GET /tenants/{tenant}/summaries/{year}/rules", { tenant, year: f.yesterday().slice(0, 4) });
    return new Map(rules.map((rule) => [rule.ruleId, rule]));
  } catch (error) {
    if (hasStatus(error, 403, 404)) return new Map();
    throw error;
  }
}

/** @param {Contract.Rule} rule whose result may serve whom */
function sharedBy(rule) {
  if (!rule.varyBy) return "everybody (the rule does not say)";
  return rule.varyBy.length ? ["requests with the same ", h("code", rule.varyBy.join(", "))] : "everybody";
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
  const changed = h("div");
  const open = () => {
    fill(changed, skeleton(1));
    blame().then((found) => fill(changed, lastChanges(tenant, rule.id, found)), (error) => fill(changed, failure(error)));
  };
  const element = h("details", { class: rule.enabled ? "rule" : "rule off", open: isOpen, id: `rule-${rule.id}` },
    h("summary",
      h("span.place", index + 1),
      h("div", h("div.rule-name", rule.name || rule.id), h("div.rule-text", asSentence(rule.conditions))),
      h("span", badge(!rule.enabled ? "off" : rule.action === "cache" ? `cache ${f.span(rule.ttlSeconds)}` : rule.action, rule.enabled ? ACTION[rule.action] : "")),
      h("span.num.wide-only", effect && rule.action !== "deny" ? f.number(effect.totalExecutions) : f.NONE),
      h("span.num.wide-only", rate !== null && h("progress.meter", { max: 1, value: rate, "aria-label": "Hit rate" }), f.percent(rate)),
      h("span.num.wide-only", effect && rule.action === "cache" ? f.duration(effect.warehouseTimeSavedMs) : f.NONE)),
    h("div.rule-more",
      rule.description && h("p", rule.description),
      facts([
        ["Id", h("code", rule.id)],
        rule.action === "cache" && ["Fresh for", f.span(rule.ttlSeconds)],
        rule.action === "cache" && ["Results are shared by", sharedBy(rule)],
        rule.staleWhileRevalidate && ["Then stale for", f.span(rule.staleWhileRevalidate)],
        rule.invalidateRules?.length && ["Invalidates", rule.invalidateRules.map((id) => [h("code", id), " "])],
        rule.requireInvalidation && ["If markers fail", "the statement is refused"],
        effect && ["This year", `${f.count(effect.cacheHits, "hit")}, ${f.number(effect.cacheMisses)} misses, ${f.count(effect.queriesMatched, "statement")}`],
      ]),
      code(rule.conditions, "Conditions"),
      rule.action === "cache" && can(tenant, "cache") && h("p.small", a(to(tenant, "invalidate", { rule: rule.id }), "Invalidate its results")),
      h("h3", "Last changed by"), changed));
  element.addEventListener("toggle", open, { once: true });
  return element;
}
