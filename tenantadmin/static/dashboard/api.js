// Calls of the service, by operations of its contract: call("GET /config/tenants/{tenant}/rules", {tenant}).

import { API } from "./config.js";
import { expirePat, patBearer } from "./pats.js";
import { claims, expiry, session, store } from "./session.js";

/** What the service refused, or that it did not answer (status 0). */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {any} body
   * @param {string} requestId
   * @param {number} [retryAfter] seconds
   */
  constructor(status, body, requestId, retryAfter) {
    super(body?.message ?? (status ? `The service answered ${status}.` : "The service does not answer."));
    this.status = status;
    this.body = body;
    this.code = body?.error ?? "";
    this.requestId = body?.requestId ?? requestId;
    this.retryAfter = retryAfter;
  }
}

/** The session has ended: sign in again. */
export class SignedOut extends Error {}

/** @typedef {{ifMatch?: string, accept?: string, signal?: AbortSignal, anonymous?: boolean}} Options */

/** Operations that only a personal access token may call: the dashboard makes one for the tenant. */
const BY_PAT = /^\S+ \/tenants\/\{tenant\}\/(summaries|timeline|reports|recommendations|digests)\b/;
const ATTEMPTS = 3;
const LONGEST_WAIT_SECONDS = 15;

/**
 * @template {keyof Contract.Operations} K
 * @param {K} operation
 * @param {Contract.Input<K>} input
 * @param {Options} [options]
 * @returns {Promise<Contract.Operations[K]["answer"]>}
 */
export async function call(operation, input, options) {
  const response = await send(operation, input, options);
  return response.status === 204 ? null : response.json();
}

/**
 * As `call`, with the ETag of the answer.
 * @template {keyof Contract.Operations} K
 * @param {K} operation
 * @param {Contract.Input<K>} input
 * @param {Options} [options]
 * @returns {Promise<{data: Contract.Operations[K]["answer"], etag: string}>}
 */
export async function callWithTag(operation, input, options) {
  const response = await send(operation, input, options);
  return { data: await response.json(), etag: response.headers.get("ETag") ?? "" };
}

/**
 * @template {keyof Contract.Operations} K
 * @param {K} operation
 * @param {Contract.Input<K>} input
 * @param {Options} [options]
 * @returns {Promise<Response>} one that succeeded
 */
export async function send(operation, input, options = {}) {
  const byPat = BY_PAT.test(operation);
  const tenant = byPat ? String(/** @type {any} */ (input).tenant) : "";
  let renewed = options.anonymous;
  for (let attempt = 1; ; attempt += 1) {
    const bearer = options.anonymous ? "" : byPat ? await patBearer(tenant) : await userBearer();
    const response = await fetchOnce(operation, input, options, bearer);
    if (response.ok) return response;
    const error = await asError(response);
    if (response.status === 401 && !renewed) {
      renewed = true;
      if (byPat) expirePat(tenant);
      // Of calls that were refused together, the first has renewed it for all.
      else if (session()?.access === bearer) await renew();
    } else if (error.code === "tos_required") {
      location.hash = "#/terms";
      throw error;
    } else if (attempt < ATTEMPTS && [429, 503].includes(response.status)
      && (error.retryAfter ?? LONGEST_WAIT_SECONDS + 1) <= LONGEST_WAIT_SECONDS) {
      await new Promise((resolve) => setTimeout(resolve, 1000 * Math.max(1, error.retryAfter ?? 1)));
    } else throw error;
  }
}

/**
 * @param {string} operation
 * @param {Record<string, any>} input path and query parameters, and `body`
 * @param {Options} options
 * @param {string} bearer
 */
async function fetchOnce(operation, input, options, bearer) {
  const [method, template] = operation.split(" ");
  const { body, ...rest } = input;
  const path = template.replace(/\{(\w+)\}/g, (_, name) => {
    const value = rest[name];
    delete rest[name];
    return encodeURIComponent(value);
  });
  const query = new URLSearchParams(Object.entries(rest).filter(([, value]) => value !== undefined && value !== ""));
  /** @type {Record<string, string>} */
  const headers = { Accept: options.accept ?? "application/json" };
  if (bearer) headers.Authorization = `Bearer ${bearer}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (options.ifMatch) headers["If-Match"] = options.ifMatch;
  const text = query.toString();
  try {
    return await fetch(`${API}${path}${text ? `?${text}` : ""}`, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body),
      signal: options.signal, credentials: "omit", cache: "no-cache",
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(0, null, "");
  }
}

/** @param {Response} response */
async function asError(response) {
  const after = Number(response.headers.get("Retry-After"));
  const body = await response.json().catch(() => null);
  return new ApiError(response.status, body, response.headers.get("X-Request-Id") ?? "", after || undefined);
}

/** @type {Promise<void> | null} */
let renewing = null;

/** Get a new access token by the refresh token; once for all callers. */
export function renew() {
  renewing ??= renewOnce().finally(() => { renewing = null; });
  return renewing;
}

async function renewOnce() {
  const held = session();
  if (!held) throw new SignedOut();
  try {
    const body = { grant_type: /** @type {const} */ ("refresh_token"), refresh_token: held.refresh };
    const answer = await call("POST /oauth/token", { body }, { anonymous: true });
    store({ ...held, access: answer.access_token, expiresAt: expiry(answer) });
  } catch (error) {
    if (error instanceof ApiError && [400, 401, 403].includes(error.status)) {
      store(null);
      throw new SignedOut();
    }
    throw error;
  }
}

async function userBearer() {
  if ((session()?.expiresAt ?? 0) < Date.now() + 30_000) await renew();
  const held = session();
  if (!held) throw new SignedOut();
  return held.access;
}

/** @param {boolean} everywhere end the user's other sessions too */
export async function signOut(everywhere) {
  const held = session();
  if (!held) return;
  if (everywhere) await call("DELETE /users/{email}/sessions", { email: "me" });
  store(null);
  const tokens = [...Object.values(held.pats).map((pat) => pat.token), held.refresh];
  const options = { anonymous: true };
  await Promise.allSettled(tokens.map((token) => call("POST /auth/logout", { body: { token } }, options)));
}

/** Whether the user must first accept the terms of service. */
export const mustAcceptTerms = () => claims().tos_required === true;
