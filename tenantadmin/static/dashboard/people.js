// The signed-in user, its tenants, and what its role on each allows.

import { call } from "./api.js";
import { setScopeRule } from "./pats.js";

/**
 * @typedef {{id: string, name: string, role: string, modifiedAt: string}} Tenant
 * @typedef {{email: string, name: string, role: string, tenants: Tenant[]}} Person
 * @typedef {"write" | "people" | "owner" | "member"} Right
 */

/** @type {Promise<Person> | null} */
let reading = null;
/** @type {Person | null} */
let known = null;

/** Read the user once; both requests at a time. */
export function person() {
  reading ??= read().catch((error) => {
    reading = null;
    throw error;
  });
  return reading;
}

export function forgetPerson() {
  reading = known = null;
}

async function read() {
  const [user, manifest] = await Promise.all([
    call("GET /users/{email}", { email: "me" }), call("GET /config/tenants/manifest", {}),
  ]);
  const roles = new Map(user.tenants.map((entry) => [entry.tenantId, entry.role]));
  const tenants = manifest._links.items.map((item) => ({
    id: item.name, name: item.tenantName, modifiedAt: item.modifiedAt, role: roles.get(item.name) ?? "granted",
  }));
  tenants.sort((x, y) => x.name.localeCompare(y.name));
  known = { email: user.email, name: user.displayName || user.email, role: user.roles.primary, tenants };
  return known;
}

/**
 * Whether the user's role allows it: `member` reads logs, `write` changes rules and configuration, `people`
 * sees who else is in the tenant, `owner` changes that. A guest only reads.
 * @param {string} tenant
 * @param {Right} right
 */
export function can(tenant, right) {
  if (!known) return false;
  const role = known.tenants.find((entry) => entry.id === tenant)?.role ?? "";
  const rank = { member: 1, admin: 2, owner: 3 }[role] ?? 0;
  if (right === "member") return rank > 0;
  if (right === "people") return rank > 1 || known.role === "admin";
  if (known.role === "admin") return true;
  if (known.role === "guest") return false;
  return rank > (right === "owner" ? 2 : 1);
}

setScopeRule((tenant) => {
  const scopes = ["config:read", "analytics:read"];
  if (can(tenant, "write")) scopes.push("config:write");
  if (can(tenant, "write") || known?.role === "admin") scopes.push("analytics:users");
  return scopes;
});
