// How a tenant is, in one sentence, with the way to the day of which it speaks.

import { call } from "./api.js";
import { a, fill, h, to } from "./ui.js";

/** @type {Record<Contract.Verdict["state"], string>} */
const STATES = { healthy: "good", "hit-rate-recovered": "", "hit-rate-fell": "bad", finding: "bad", "log-late": "bad", "no-log-yet": "", "not-judged-yet": "" };

/** @param {string} tenant its page does not wait for the verdict */
export function verdict(tenant) {
  const line = h("p.verdict", { role: "status" });
  call("GET /tenants/{tenant}/verdict", { tenant }).then(({ state, text, day }) => fill(line, h("strong", { class: STATES[state] }, text),
    day && /hit-rate|finding/.test(state) && a(to(tenant, "digest", { day }), "Digest of that day")), () => line.remove());
  return line;
}
