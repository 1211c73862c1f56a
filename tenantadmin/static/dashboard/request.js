// One request: with a new token after a 401, and again soon after a 429 or 503.

import { API, HOME } from "./config.js";
import { beginSignIn, expiry, session, store } from "./session.js";
import { makeChallenge, openingPage, shownPage, staff } from "./staff.js";

/** What the service refused, or that it did not answer (status 0). */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {any} body
   * @param {string} requestId
   * @param {number} [retryAfter] seconds
   */
  constructor(status, body, requestId, retryAfter) {
    super(
      body?.message ??
        (status ? `The service answered ${status}.` : "The service does not answer."),
    );
    this.status = status;
    this.body = body;
    this.code = body?.error ?? "";
    this.requestId = body?.requestId ?? requestId;
    this.retryAfter = retryAfter;
  }
}

/**
 * @type {(error: unknown, ...statuses: number[]) => boolean} whether the service answered with one
 *   of them
 */
export const hasStatus = (error, ...statuses) =>
  error instanceof ApiError && statuses.includes(error.status);

/** The session has ended: sign in again. */
export class SignedOut extends Error {
  message = "Your session has ended: sign in again.";
}

const ATTEMPTS = 3;
const LONGEST_WAIT_SECONDS = 15;

/** @type {TokenSource} the signed-in user's access token */
export const USER = {
  async token() {
    if ((session()?.expiresAt ?? 0) < Date.now() + 30_000) await renew();
    const held = session();
    if (!held) throw new SignedOut();
    return held.access;
  },
  async replace(refused) {
    // Of requests that were refused together, the first has renewed it for all.
    if (session()?.access === refused) await renew();
  },
};

/** @type {Contract.Send} an answer that succeeded */
export const request = async (operation, input, options = {}, credential = USER) => {
  let replaced = options.anonymous;
  // What staff write as a comment is the reason that the audit asks for.
  const { comment, body } = /** @type {Record<string, any>} */ (input);
  const given = (staff() && (comment || body?.reason || body?.metadata?.reason)) || undefined;
  for (let attempt = 1; ; attempt += 1) {
    const token = options.anonymous ? "" : await credential.token();
    /** @type {Response} */
    const response = await fetchOnce(operation, input, { reason: given, ...options }, token);
    if (response.ok) return response;
    const error = await asError(response);
    if (response.status === 401 && !replaced) {
      replaced = true;
      await credential.replace(token);
    } else if (error.code === "tos_required") {
      location.hash = "#/terms";
      throw error;
    } else if (error.code === "second_factor_required") {
      if (error.body?.details?.[0]?.code !== "missing-reason")
        await prove(error, { operation, input, options: { ifMatch: options.ifMatch } });
      options = { ...options, reason: askReason(error) };
    } else if (
      attempt < ATTEMPTS &&
      [429, 503].includes(response.status) &&
      (error.retryAfter ?? LONGEST_WAIT_SECONDS + 1) <= LONGEST_WAIT_SECONDS
    ) {
      await new Promise((resolve) =>
        setTimeout(resolve, 1000 * Math.max(1, error.retryAfter ?? 1)),
      );
    } else throw error;
  }
};

/** @type {Contract.Call} */
export const requestJson = async (operation, input, options, credential) => {
  const response = await request(operation, input, options, credential);
  return response.status === 204 ? null : response.json();
};

/**
 * Go and prove the second factor, if the user agrees. The page makes the request again when the
 * user comes back.
 * @param {ApiError} error
 * @param {Interrupted} interrupted
 * @returns {Promise<never>}
 */
async function prove(error, interrupted) {
  if (confirm(`${error.message}\n\nGo there now?`)) {
    const waiting = interrupted.operation.startsWith("GET ") ? undefined : interrupted;
    const opened = staff();
    if (opened) {
      // The session of staff would not be one of staff behind the other page.
      const { tenant, reason } = opened;
      const challenge = await makeChallenge(waiting);
      location.assign(openingPage(tenant, shownPage(), { reason, challenge, proof: "1" }));
    } else {
      beginSignIn(waiting);
      location.assign(
        `${API}/auth/step-up?${new URLSearchParams({ redirect: HOME + location.hash })}`,
      );
    }
  }
  throw error;
}

/** @param {ApiError} error @returns {string} the reason that is missing */
function askReason(error) {
  const reason = prompt(
    "Why do you do this? Other staff read it in the audit log, and who may see the history of what you change.",
    staff()?.reason,
  )?.trim();
  if (!reason) throw error;
  return reason;
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
  const query = String(
    new URLSearchParams(
      Object.entries(rest).filter(([, value]) => value !== undefined && value !== ""),
    ),
  );
  /** @type {Texts} */
  const headers = { Accept: options.accept ?? "application/json" };
  if (bearer) headers.Authorization = `Bearer ${bearer}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (options.ifMatch) headers["If-Match"] = options.ifMatch;
  if (options.reason) headers["X-Reason"] = encodeURIComponent(options.reason);
  try {
    return await fetch(`${API}${path}${query ? `?${query}` : ""}`, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: options.signal,
      credentials: "omit",
      cache: "no-cache",
    });
  } catch (error) {
    throw options.signal?.aborted ? error : new ApiError(0, null, "");
  }
}

/** @param {Response} response */
async function asError(response) {
  const after = Number(response.headers.get("Retry-After"));
  const body = await response.json().catch(() => null);
  return new ApiError(
    response.status,
    body,
    response.headers.get("X-Request-Id") ?? "",
    after || undefined,
  );
}

/** @type {{renewing: Promise<void> | null}} */
const tokens = { renewing: null };

/** Get a new access token by the refresh token; once for all callers. */
export const renew = () =>
  (tokens.renewing ??= renewOnce().finally(() => {
    tokens.renewing = null;
  }));

async function renewOnce() {
  const held = session();
  if (!held) throw new SignedOut();
  try {
    const body = {
      grant_type: /** @type {const} */ ("refresh_token"),
      refresh_token: held.refresh,
    };
    const answer = await requestJson("POST /oauth/token", { body }, { anonymous: true });
    const now = session();
    // Meanwhile the user may have signed out, and tokens of tenants may have come.
    if (now?.refresh === held.refresh)
      store({ ...now, access: answer.access_token, expiresAt: expiry(answer) });
  } catch (error) {
    if (hasStatus(error, 400, 401, 403)) {
      store(null);
      throw new SignedOut();
    }
    throw error;
  }
}
