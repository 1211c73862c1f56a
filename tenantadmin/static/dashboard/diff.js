// Differences of rulesets and documents: computed as the service does, and shown.

import { badge, code, h } from "./ui.js";

/** @param {any[]} before @param {any[]} after @returns {Difference} */
export function compareRules(before, after) {
  const old = new Map(before.map((rule) => [rule.id, rule]));
  const now = new Map(after.map((rule) => [rule.id, rule]));
  const changed = after.filter((rule) => old.has(rule.id))
    .map((rule) => ({ id: rule.id, name: rule.name, fields: compareValues(old.get(rule.id), rule, "") })).filter((one) => one.fields.length);
  const order = (/** @type {any[]} */ rules) => rules.map((rule) => rule.id).filter((id) => old.has(id) && now.has(id)).join("\n");
  return {
    added: after.filter((rule) => !old.has(rule.id)), removed: before.filter((rule) => !now.has(rule.id)), changed,
    reordered: order(before) !== order(after),
  };
}

/** @param {any} from @param {any} to @param {string} path @returns {Field[]} */
export function compareValues(from, to, path) {
  if (JSON.stringify(from) === JSON.stringify(to)) return [];
  const deep = [from, to].every((value) => value && typeof value === "object" && !Array.isArray(value));
  if (!deep) return [{ path, from, to }];
  return [...new Set([...Object.keys(from), ...Object.keys(to)])].flatMap((key) =>
    compareValues(Object.hasOwn(from, key) ? from[key] : undefined, Object.hasOwn(to, key) ? to[key] : undefined, `${path}/${key}`));
}

/** @param {Difference} difference */
export const isSame = (difference) => !changesIn(difference);

/** @param {Difference} difference how many changes it has */
export const changesIn = ({ added, removed, changed, reordered }) => added.length + removed.length + changed.length + Number(reordered ?? false);

/** @param {any} value */
const text = (value) => (value === undefined || value === null ? "–" : typeof value === "string" ? value : JSON.stringify(value));

/** @param {Field[]} fields */
export const fieldTable = (fields) =>
  h("table", h("thead", h("tr", ["Field", "Before", "After"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", fields.map((one) => h("tr", h("td", one.path || "/"), h("td.was", text(one.from)), h("td.now", text(one.to))))));

/** @param {NamedRule} rule */
const titleOf = ({ id, name }) => [name, " ", h("code", id)];

/** @param {Difference} difference @param {string[]} [conflicts] ids of rules that others have changed too */
export function ruleDiff(difference, conflicts = []) {
  if (isSame(difference)) return h("p.pad.muted", "Nothing differs.");
  const few = difference.added.length < 4;
  const whole = (/** @type {{id: string}} */ rule, /** @type {boolean} */ open) => h("details", { open }, h("summary.muted.small", "The rule"),
    code(rule));
  return h("div.diff",
    difference.reordered && h("p", badge("order", "info"), " The rules are in another order."),
    difference.changed.map((one) => h("section", h("h3", badge("changed", "info"), titleOf(one),
      conflicts.includes(one.id) && badge("changed by others too", "warn")), h("div.table", { tabindex: 0, role: "region", "aria-label": one.id }, fieldTable(one.fields)))),
    difference.added.map((rule) => h("section", h("h3", badge("added", "good"), titleOf(rule)), whole(rule, few))),
    difference.removed.map((rule) => h("section", h("h3", badge("removed", "bad"), titleOf(rule)), whole(rule, false))));
}
