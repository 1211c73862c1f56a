// The tokens of this tab: in memory and in session storage, never in the address and never shared.

/**
 * @typedef {{id: number, token: string, access: string, expiresAt: number}} Pat
 * @typedef {{access: string, refresh: string, expiresAt: number, pats: Record<string, Pat>}} Session
 */

const KEY = "dashboard.session";

/** @type {Session | null} */
let current = read();

/** @returns {Session | null} */
function read() {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "null");
  } catch {
    return null;
  }
}

export function session() {
  return current;
}

/** @param {Session | null} value */
export function store(value) {
  current = value;
  if (value) sessionStorage.setItem(KEY, JSON.stringify(value));
  else sessionStorage.removeItem(KEY);
}

/** @param {{access_token: string, expires_in: number}} answer */
export const expiry = (answer) => Date.now() + answer.expires_in * 1000;

/**
 * The claims of the access token. Only the service verifies them; here they choose the page to show.
 * @returns {Record<string, any>}
 */
export function claims() {
  const payload = current?.access.split(".")[1];
  if (!payload) return {};
  const bytes = Uint8Array.from(atob(payload.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes));
}

/** Take the tokens of a sign-in out of the address, before anything else can read or keep it. */
export function takeTokens() {
  const query = new URLSearchParams(location.search);
  const access = query.get("access_token");
  const refresh = query.get("refresh_token");
  if (!access && !refresh) return;
  const seconds = Number(query.get("expires_in")) || 0;
  history.replaceState(null, "", location.pathname + location.hash);
  if (access && refresh) store({ access, refresh, expiresAt: Date.now() + seconds * 1000, pats: {} });
}
