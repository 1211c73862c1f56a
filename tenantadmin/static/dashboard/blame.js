// Which revision last changed the values of a rule.

import { h } from "./dom.js";
import * as f from "./format.js";
import { to } from "./router.js";
import { a } from "./ui.js";

/**
 * The revisions that made a rule what it is, newest first, each with the values that it left.
 * @param {string} tenant
 * @param {string} ruleId
 * @param {Contract.RulesBlame} blame
 */
export function lastChanges(tenant, ruleId, blame) {
  const fields = blame.rules.find((one) => one.ruleId === ruleId)?.fields ?? [];
  const changes = blame.revisions.flatMap((change) => {
    const its = fields.filter((one) => one.seq === change.seq);
    return its.length ? [{ change, its }] : [];
  });
  return h("dl", { class: "facts", "aria-label": "Last changed by" }, changes.map(({ change, its }) => [
    h("dt", null, a(to(tenant, "history", { kind: "rules", seq: change.seq }), `#${change.seq}`), its.some((one) => one.atMost) && " or before"),
    h("dd", null, change.userId, " ", h("span", { class: "muted" }, f.ago(change.changedAt), ": "),
      its.length === fields.length ? "all of it" : its.map((one) => one.path.slice(1).replaceAll("/", ".")).join(", "))]));
}
