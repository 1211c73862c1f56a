// How a tenant is, in a sentence for each finding, with the way to the day of which it speaks.

import { call } from "./api.js";
import { a, fill, h, revisionLink, to } from "./ui.js";

/** @type {Partial<Record<Contract.Verdict["state"], string>>} */
const STATES = { healthy: "good", "hit-rate-fell": "bad", finding: "bad", "log-late": "bad" };

/**
 * @param {string} tenant its page does not wait for the verdict
 * @param {boolean} [onlyAdvice] what would help now
 */
export function verdict(tenant, onlyAdvice) {
  const line = h("div.verdict", { role: "status" });
  const said = (/** @type {Contract.VerdictSentence} */ { state, text, day }) =>
    h(
      "p",
      h("strong", { class: STATES[state] }, text),
      day &&
        /hit-rate|finding/.test(state) && [
          " ",
          a(to(tenant, "digest", { day }), "Digest of that day"),
        ],
    );
  call("GET /tenants/{tenant}/verdict", { tenant }).then(
    ({ more = [], advice, ...worst }) =>
      fill(
        line,
        !onlyAdvice && [worst, ...more].map(said),
        advice && h("p", "What would help now: ", a(to(tenant, "recommendations"), advice)),
      ),
    () => line.remove(),
  );
  return line;
}

/**
 * @type {(tenant: string, leaks: { closedBy?: number, closedByConfig?: number }) => Child} a link
 *   to the revision that closed leaks
 */
export const closing = (tenant, { closedBy, closedByConfig: seq }) =>
  seq
    ? [revisionLink(tenant, seq, undefined, "config"), " of the configuration"]
    : closedBy && revisionLink(tenant, closedBy);
