// The tokens of this tab: in memory and in session storage, never in the address and never shared.

const KEY = "dashboard.session";
/** When a sign-in was begun in this tab, and the request that waits for it. */
const BEGUN = "dashboard.signin";
/** The tenant that the user was in last. */
const TENANT = "dashboard.tenant";
const SIGN_IN_MS = 15 * 60_000;

/**
 * @type {{session: Session | null, interrupted: Interrupted | null}} `interrupted`: what waited for
 *   the sign-in that just ended
 */
const tab = { session: read(), interrupted: null };

/** @returns {Session | null} */
function read() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "null");
  } catch {
    return null;
  }
}

export const session = () => tab.session;

/** @param {Session | null} value */
export function store(value) {
  tab.session = value;
  if (value) sessionStorage.setItem(KEY, JSON.stringify(value));
  else [KEY, TENANT].forEach((one) => sessionStorage.removeItem(one));
}

/** The tenant that the user was in last, in this tab. */
export const keptTenant = () => sessionStorage.getItem(TENANT) ?? "";

/** @param {string} tenant */
export const keepTenant = (tenant) => sessionStorage.setItem(TENANT, tenant);

/** @param {{access_token: string, expires_in: number}} answer */
export const expiry = (answer) => Date.now() + answer.expires_in * 1000;

/**
 * The claims of the access token. Only the service verifies them; here they choose the page to
 * show.
 * @returns {Record<string, any>}
 */
export function claims(access = tab.session?.access) {
  const payload = access?.split(".")[1];
  if (!payload) return {};
  const bytes = Uint8Array.from(atob(payload.replace(/-/g, "+").replace(/_/g, "/")), (c) =>
    c.charCodeAt(0),
  );
  return JSON.parse(new TextDecoder().decode(bytes));
}

/**
 * Remember that this tab takes the tokens that come back.
 * @param {Interrupted} [waiting] the request to make then
 * @param {boolean} [isDone] the tokens are here: the request is made when the page is loaded again
 */
export function beginSignIn(waiting, isDone) {
  sessionStorage.setItem(BEGUN, JSON.stringify({ at: Date.now(), waiting, isDone }));
}

/** The request that waited for this sign-in, once. */
export function takeInterrupted() {
  const taken = tab.interrupted;
  tab.interrupted = null;
  return taken;
}

/**
 * Take the tokens of a sign-in out of the address, before anything else can read or keep it. Return
 * the tokens
 * of one that was not begun in this tab: another person may have sent the link.
 * @returns {Session | null}
 */
export function takeTokens() {
  const begun = JSON.parse(sessionStorage.getItem(BEGUN) ?? "{}");
  const isBegun = Date.now() - (begun.at ?? 0) < SIGN_IN_MS;
  sessionStorage.removeItem(BEGUN);
  if (begun.isDone) tab.interrupted = begun.waiting ?? null;
  const query = new URLSearchParams(location.search);
  const access = query.get("access_token");
  const refresh = query.get("refresh_token");
  if (!access && !refresh) return null;
  const seconds = Number(query.get("expires_in")) || 0;
  history.replaceState(null, "", location.pathname + location.hash);
  if (!access || !refresh) return null;
  const held = tab.session;
  const isSame = held !== null && claims().sub === claims(access).sub;
  /** @type {Session} */
  const offered = {
    access,
    refresh,
    expiresAt: Date.now() + seconds * 1000,
    pats: isSame && held ? held.pats : {},
  };
  if (!isBegun && !isSame) return offered;
  // Another user has signed in instead: the request was not theirs.
  if (isBegun && isSame) tab.interrupted = begun.waiting ?? null;
  store(offered);
  return null;
}
