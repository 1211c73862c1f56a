// Calls of the service, by operations of its contract:
// call("GET /config/tenants/{tenant}/rules", {tenant}).

import { patOf } from "./pats.js";
import { USER, request, requestJson } from "./request.js";
import { claims, session, store } from "./session.js";

export { ApiError, SignedOut, hasStatus, renew } from "./request.js";

/**
 * Operations that only a personal access token may call: the dashboard makes one for the tenant.
 */
const BY_PAT = new RegExp(
  `^\\S+ /tenants/{tenant}/(${[
    ...["summaries", "activity", "statements", "savings", "verdict", "timeline", "reports"],
    ...["recommendations", "digests", "alerts", "invalidations", "invalidation-markers", "rules"],
    "verifications",
  ].join("|")})\\b`,
);

/** @param {string} operation @param {any} input */
const credentialOf = (operation, input) =>
  BY_PAT.test(operation) ? patOf(String(input.tenant)) : USER;

/** @type {Contract.Call} */
export const call = (operation, input, options) =>
  requestJson(operation, input, options, credentialOf(operation, input));

/** @param {string} tenant its rules in force */
export const rulesOf = (tenant) => call("GET /config/tenants/{tenant}/rules", { tenant });

/** @param {string} tenant its configuration */
export const configOf = (tenant) => call("GET /config/tenants/{tenant}/config", { tenant });

/**
 * @param {string[]} tenants what the cache did for each in the last seven days
 * @param {AbortSignal} signal
 */
export const weeksOf = async (tenants, signal) =>
  (await requestJson("GET /tenants/weeks", {}, { signal }, patOf(tenants.join(",")))).weeks;

/** @type {Contract.CallWithTag} as `call`, with the ETag of the answer */
export const callWithTag = async (operation, input, options) => {
  const response = await send(operation, input, options);
  return { data: await response.json(), etag: response.headers.get("ETag") ?? "" };
};

/** @type {Contract.Send} */
export const send = (operation, input, options) =>
  request(operation, input, options, credentialOf(operation, input));

/** @param {boolean} [everywhere] end the user's other sessions too */
export async function signOut(everywhere) {
  const held = session();
  if (!held) return;
  if (everywhere) await call("DELETE /users/{email}/sessions", { email: "me" });
  store(null);
  const tokens = [...Object.values(held.pats).map((pat) => pat.token), held.refresh];
  await Promise.allSettled(
    tokens.map((token) => call("POST /auth/logout", { body: { token } }, { anonymous: true })),
  );
}

/** Whether the user must first accept the terms of service. */
export const mustAcceptTerms = () => claims().tos_required === true;
