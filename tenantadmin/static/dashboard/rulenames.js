// Rules by their names, where answers of the service have their ids.

import { rulesOf } from "./api.js";
import { ruleLink, select } from "./ui.js";

/**
 * @type {(rules: any[], id: string | null, key?: string) => string} the name of one of these rules,
 *   or its id, which is at `key`
 */
export const nameIn = (rules, id, key = "id") => rules.find((rule) => rule[key] === id)?.name || id;

/**
 * @param {string} tenant the rules in force: `name` and `link` take an id, and the name that a rule
 *   had last, if it is known; `choice` is a filter by rule
 */
export async function readRules(tenant) {
  const { rules, modifiedAt } = await rulesOf(tenant);
  const names = new Map(rules.map((rule) => [rule.id, rule.name || rule.id]));
  /** @type {(id: string, last?: string) => string} */
  const name = (id, last) => names.get(id) ?? last ?? id;
  /** @type {(id: string | null, last?: string) => Child} */
  const link = (id, last) => ruleLink(tenant, id, id && name(id, last));
  return {
    rules,
    modifiedAt,
    name,
    link,
    /** @type {(head?: string, key?: string, last?: Texts) => Column} */
    column: (head = "Rule", key = "ruleId", last = {}) => ({
      head,
      class: "value",
      cell: (row) => link(row[key], last[row[key]]),
      sort: (row) => row[key] && name(row[key], last[row[key]]),
    }),
    choice: (/** @type {string} */ field, chosen = "") =>
      select(
        field,
        { [chosen]: chosen, "": "any", none: "no rule", ...Object.fromEntries(names) },
        chosen,
      ),
  };
}
