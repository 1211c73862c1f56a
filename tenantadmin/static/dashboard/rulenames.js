// Rules by their names, where answers of the service have their ids.

import { call } from "./api.js";
import { ruleLink, select } from "./ui.js";

/** @param {string} tenant the rules in force: `name` and `link` take an id, and the name that a rule had last, if it is known; `choice` is a filter by rule */
export async function readRules(tenant) {
  const { rules } = await call("GET /config/tenants/{tenant}/rules", { tenant });
  const names = new Map(rules.map((rule) => [rule.id, rule.name || rule.id]));
  const name = (/** @type {string} */ id, /** @type {string | null | undefined} */ last) => names.get(id) ?? last ?? id;
  const link = (/** @type {string | null} */ id, /** @type {string | null} [last] */ last = null) => ruleLink(tenant, id, id && name(id, last));
  return {
    rules, name, link,
    /** @type {(head?: string, key?: string, last?: Texts) => Column} */
    column: (head = "Rule", key = "ruleId", last = {}) => ({ head, class: "value", cell: (row) => link(row[key], last[row[key]]), sort: (row) => row[key] && name(row[key], last[row[key]]) }),
    choice: (/** @type {string} */ field, chosen = "") => select(field, { [chosen]: chosen, "": "any", none: "no rule", ...Object.fromEntries(names) }, chosen),
  };
}
