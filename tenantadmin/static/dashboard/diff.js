// Differences of rulesets and documents. The service says in words what changed in a rule.

import { badge, code, h } from "./ui.js";

/** @param {any[]} before @param {any[]} after @returns {Difference} */
export function compareRules(before, after) {
  const old = new Map(before.map((rule) => [rule.id, rule]));
  const now = new Map(after.map((rule) => [rule.id, rule]));
  const order = (/** @type {any[]} */ rules) =>
    rules
      .map((rule) => rule.id)
      .filter((id) => old.has(id) && now.has(id))
      .join("\n");
  return {
    added: after.filter((rule) => !old.has(rule.id)),
    removed: before.filter((rule) => !now.has(rule.id)),
    changed: after.filter((rule) => old.has(rule.id) && sorted(old.get(rule.id)) !== sorted(rule)),
    reordered: order(before) !== order(after),
  };
}

/** @param {any} value its JSON; the order of members does not count */
const sorted = (value) =>
  JSON.stringify(value, (_, one) =>
    one && typeof one === "object" && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).sort())
      : one,
  );

/** @param {Difference} difference how many changes it has */
export const changesIn = ({ added, removed, changed, reordered }) =>
  added.length + removed.length + changed.length + Number(reordered ?? false);

/** @param {Contract.ChangeInWords[]} [fields] */
export const fieldDiff = (fields = []) =>
  fields.length ? h("div.diff", fieldTable(fields)) : h("p.pad.muted", "Nothing differs.");

/** @param {Contract.ChangeInWords[]} [fields] */
const fieldTable = (fields = []) =>
  h(
    "table",
    h(
      "thead",
      h(
        "tr",
        ["Field", "Before", "After"].map((name) => h("th", { scope: "col" }, name)),
      ),
    ),
    h(
      "tbody",
      fields.map((one) => h("tr", h("td", one.field), h("td.was", one.from), h("td.now", one.to))),
    ),
  );

/** @param {NamedRule} rule */
const titleOf = ({ id, name }) => [name, " ", h("code", id)];

/**
 * @param {Difference} difference
 * @param {string[]} [conflicts] ids of rules that others have changed too
 */
export function ruleDiff(difference, conflicts = []) {
  if (!changesIn(difference)) return fieldDiff();
  const whole = (/** @type {{id: string}} */ rule, /** @type {boolean} */ open) =>
    h("details", { open }, h("summary.muted.small", "The rule"), code(rule));
  return h(
    "div.diff",
    difference.reordered && h("p", badge("order", "info"), " The rules are in another order."),
    difference.changed.map((one) =>
      h(
        "section",
        h(
          "h3",
          badge("changed", "info"),
          titleOf(one),
          conflicts.includes(one.id) && badge("changed by others too", "warn"),
        ),
        h(
          "div.table",
          { tabindex: 0, role: "region", "aria-label": one.id },
          fieldTable(one.inWords),
        ),
      ),
    ),
    difference.added.map((rule) =>
      h(
        "section",
        h("h3", badge("added", "good"), titleOf(rule)),
        whole(rule, difference.added.length < 4),
      ),
    ),
    difference.removed.map((rule) =>
      h("section", h("h3", badge("removed", "bad"), titleOf(rule)), whole(rule, false)),
    ),
  );
}
