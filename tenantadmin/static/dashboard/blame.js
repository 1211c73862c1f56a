// Which revision last changed the values of a rule.

import * as f from "./format.js";
import { h, revisionLink } from "./ui.js";

/**
 * @param {string} tenant
 * @param {string} ruleId
 * @param {Contract.RulesBlame} blame the revisions that made a rule what it is, newest first
 */
export function lastChanges(tenant, ruleId, blame) {
  const fields = blame.rules.find((one) => one.ruleId === ruleId)?.fields ?? [];
  const changes = blame.revisions.flatMap((change) => {
    const its = fields.filter((one) => one.seq === change.seq);
    return its.length ? [{ change, its }] : [];
  });
  return h(
    "dl.facts",
    { "aria-label": "Last changed by" },
    changes.map(({ change, its }) => [
      h(
        "dt",
        revisionLink(tenant, change.seq, `Revision ${change.seq}`),
        its.some((one) => one.atMost) && " or before",
      ),
      h(
        "dd",
        change.userId,
        " ",
        h("span.muted", f.ago(change.changedAt), ": "),
        its.length === fields.length
          ? "all of it"
          : [...new Set(its.map((one) => one.label))].join(", "),
      ),
    ]),
  );
}
