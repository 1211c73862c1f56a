// Personal access tokens for what signing in alone does not allow: summaries and reports.

import { ApiError, hasStatus, requestJson } from "./request.js";
import { expiry, session, store } from "./session.js";

export const NAME = "Dashboard, until sign-out";

/** @type {Map<string, Promise<string>>} */
const minting = new Map();
/** @type {{scopesFor: (tenant: string) => Promise<string[]>}} */
const rule = { scopesFor: async () => [] };

/**
 * @param {(tenant: string) => Promise<string[]>} scopesFor what the user may give to a token for a
 *   tenant
 */
export function setScopeRule(scopesFor) {
  rule.scopesFor = scopesFor;
}

/** @param {string} tenant or several, with commas @returns {TokenSource} a token for a day */
export const patOf = (tenant) => ({
  token: () => accessToken(tenant),
  replace: () => expirePat(tenant),
});

/** @param {string} tenant the access token of the tenant's personal access token */
async function accessToken(tenant) {
  const scopes = await rule.scopesFor(tenant);
  const pat = session()?.pats[tenant];
  if (pat && pat.expiresAt > Date.now() + 30_000 && fits(pat, scopes)) return pat.access;
  let promise = minting.get(tenant);
  if (!promise) {
    promise = mintPat(tenant, scopes).finally(() => minting.delete(tenant));
    minting.set(tenant, promise);
  }
  return promise;
}

/**
 * @param {Pat} pat
 * @param {string[]} scopes whether it has the scopes that the user may give now: a role may have
 *   changed
 */
const fits = (pat, scopes) => pat.scopes === scopes.join(" ");

/** @param {string} tenant @param {string[]} scopes */
async function mintPat(tenant, scopes) {
  const held = session()?.pats[tenant];
  if (held && !fits(held, scopes))
    await requestJson("POST /auth/logout", { body: { token: held.token } }, { anonymous: true });
  else if (held) {
    try {
      return await exchangePat(tenant, held);
    } catch (error) {
      // Revoked or expired: make another.
      if (!hasStatus(error, 401)) throw error;
    }
  }
  const expiresAt = new Date(Date.now() + 86_400_000).toISOString();
  const body = {
    name: NAME,
    scopes: /** @type {any} */ (scopes),
    tenants: tenant.split(","),
    expiresAt,
  };
  const make = () => requestJson("POST /users/{email}/tokens", { email: "me", body });
  const made = await make().catch(async (error) => {
    const isFull =
      error instanceof ApiError && error.body?.details?.[0]?.code === "too-many-tokens";
    if (!isFull || !(await revokeOldest())) throw error;
    return make();
  });
  return exchangePat(tenant, {
    id: made.id,
    token: made.token,
    access: "",
    expiresAt: 0,
    scopes: scopes.join(" "),
  });
}

/** Revoke the oldest token of a dashboard: its tab was closed, or makes another. */
async function revokeOldest() {
  const { tokens } = await requestJson("GET /users/{email}/tokens", { email: "me" });
  const oldest = tokens.filter((one) => one.name === NAME).pop();
  if (oldest)
    await requestJson("DELETE /users/{email}/tokens/{pat_id}", { email: "me", pat_id: oldest.id });
  return oldest;
}

/** @param {string} tenant @param {Pat} pat */
async function exchangePat(tenant, pat) {
  keepPat(tenant, pat);
  const body = { grant_type: /** @type {const} */ ("pat_exchange"), pat: pat.token };
  const answer = await requestJson("POST /oauth/token", { body }, { anonymous: true });
  keepPat(tenant, { ...pat, access: answer.access_token, expiresAt: expiry(answer) });
  return answer.access_token;
}

/** @param {string} tenant @param {Pat} pat */
function keepPat(tenant, pat) {
  const held = session();
  if (held) store({ ...held, pats: { ...held.pats, [tenant]: pat } });
}

/** @param {string} tenant */
function expirePat(tenant) {
  const pat = session()?.pats[tenant];
  if (pat) keepPat(tenant, { ...pat, expiresAt: 0 });
}
