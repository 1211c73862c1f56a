// Staff who look at a customer's tenant: how they come in from the admin site, and how they leave.

import { API } from "./config.js";
import { claims, session } from "./session.js";

/** Where the secret of a sign-in is kept that was begun in this tab, and the request that waits for it. */
const SECRET = "dashboard.opening";

/** @type {() => Staff | null} what staff look at in this tab, if they do */
export const staff = () => (claims().staff === true && session()?.staff) || null;

/**
 * The page of the admin site that opens a tenant.
 * @param {string} tenant
 * @param {string} [page]
 * @param {Texts} [more] what its form begins with, and the challenge
 */
export const openingPage = (tenant, page = "overview", more = {}) =>
  `${API}/admin/tenants/${tenant}/open/?${new URLSearchParams({ to: page, ...more })}`;

/** The page of the tenant that is shown, with its query. */
export const shownPage = () => location.hash.split("/").slice(3).join("/");

/** @param {string} tenant */
export const adminPage = (tenant) => `${API}/admin/tenants/${tenant}/`;

/**
 * Make a secret that does not leave this tab.
 * @param {Interrupted} [waiting] the request to make when staff have come in
 * @returns {Promise<string>} its challenge (RFC 7636, S256)
 */
export async function makeChallenge(waiting) {
  const secret = encode(crypto.getRandomValues(new Uint8Array(32)));
  sessionStorage.setItem(SECRET, JSON.stringify({ secret, waiting }));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(secret));
  return encode(new Uint8Array(digest));
}

/**
 * The secret that was made in this tab, once.
 * @returns {{secret?: string, waiting?: Interrupted}}
 */
export function takeSecret() {
  const kept = sessionStorage.getItem(SECRET);
  sessionStorage.removeItem(SECRET);
  return JSON.parse(kept ?? "{}");
}

/** @param {Uint8Array} bytes */
const encode = (bytes) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
