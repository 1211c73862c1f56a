// Staff who look at a customer's tenant: how they come in from the admin site, and how they leave.

import { API } from "./config.js";
import { claims, session } from "./session.js";

/** Where the secret of a sign-in is kept that was begun in this tab. */
const SECRET = "dashboard.opening";

/** @type {() => Staff | null} what staff look at in this tab, if they do */
export const staff = () => (claims().staff === true && session()?.staff) || null;

/** @param {string} tenant @param {string} [page] the page of the admin site that opens it */
export const openingPage = (tenant, page = "overview") =>
  `${API}/admin/tenants/${tenant}/open/?${new URLSearchParams({ to: page })}`;

/** @param {string} tenant */
export const adminPage = (tenant) => `${API}/admin/tenants/${tenant}/`;

/**
 * Make a secret that does not leave this tab.
 * @returns {Promise<string>} its challenge (RFC 7636, S256)
 */
export async function makeChallenge() {
  const secret = encode(crypto.getRandomValues(new Uint8Array(32)));
  sessionStorage.setItem(SECRET, secret);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(secret));
  return encode(new Uint8Array(digest));
}

/** The secret that was made in this tab, once. */
export function takeSecret() {
  const secret = sessionStorage.getItem(SECRET);
  sessionStorage.removeItem(SECRET);
  return secret;
}

/** @param {Uint8Array} bytes */
const encode = (bytes) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
