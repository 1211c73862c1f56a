// The signed-in user, its tenants, and what its role on each allows.

import { call } from "./api.js";
import { setScopeRule } from "./pats.js";
import { staff } from "./staff.js";

/** What an owner chooses from. @type {Record<string, string>} */
export const ROLES = {
  member: "member: reads",
  admin: "admin: writes too",
  owner: "owner: manages members too",
};

/** @type {Contract.GrantablePermission[]} what a grant gives to an auditor: the numbers */
export const AUDITOR = ["analytics:numbers", "config:read"];

/**
 * What was read, until it is forgotten.
 * @typedef {object} Known
 * @property {Promise<Person> | null} reading the user, while it is read and afterwards
 * @property {Promise<Tenant[]> | null} listing the tenants likewise
 * @property {Person | null} person
 * @property {Tenant[]} tenants
 * @property {Tenant[]} deleted tenants that may come back
 * @property {Tenant[]} assessments no tenants of a Gateway, so no list has them
 * @property {Contract.PermissionGrantItem[]} grants to the user; they add to the role of a member
 */

/** @type {Known} */
const known = {
  reading: null,
  listing: null,
  person: null,
  tenants: [],
  deleted: [],
  assessments: [],
  grants: [],
};

/** Read the user once. */
export const person = () =>
  (known.reading ??= readPerson().catch((error) => {
    known.reading = null;
    throw error;
  }));

/** Read the list of the user's tenants once. */
export const tenants = () =>
  (known.listing ??= readTenants().catch((error) => {
    known.listing = null;
    throw error;
  }));

/** The tenants and assessments, if they were read. */
export const listed = () => [...known.tenants, ...known.assessments];

/** @param {string} tenant whether it is an assessment, as far as they were read */
export const isAssessment = (tenant) => known.assessments.some((one) => one.id === tenant);

/** Deleted tenants that may come back, if the tenants were read. */
export const listedDeleted = () => known.deleted;

/** @param {string} tenant whether the user is in it. A platform admin opens any. */
export async function mayOpen(tenant) {
  const opened = staff();
  if (opened) return opened.tenant === tenant;
  const { role, roles } = await person();
  return (
    role === "admin" || roles.has(tenant) || (await tenants()).some((one) => one.id === tenant)
  );
}

export function forgetPerson() {
  known.reading = known.person = null;
  forgetTenants();
}

function forgetTenants() {
  known.listing = null;
  known.tenants = known.deleted = known.assessments = [];
}

async function readPerson() {
  const user = await call("GET /users/{email}", { email: "me" });
  const roles = new Map(user.tenants.map((entry) => [entry.tenantId, entry.role]));
  known.person = {
    email: user.email,
    name: user.displayName || user.email,
    role: user.roles.primary,
    roles,
  };
  return known.person;
}

async function readTenants() {
  const [{ roles }, manifest] = await Promise.all([
    person(),
    call("GET /config/tenants/manifest", { includeDeleted: true }),
  ]);
  const all = (/** @type {boolean} */ isDeleted) =>
    manifest._links.items
      .filter((item) => item.deleted === isDeleted)
      .map((item) => ({
        id: item.name,
        name: item.tenantName,
        modifiedAt: item.modifiedAt,
        role: roles.get(item.name) ?? "granted",
      }))
      .sort((x, y) => x.name.localeCompare(y.name));
  [known.tenants, known.deleted] = [all(false), all(true)];
  const names = new Set(manifest._links.items.map((item) => item.name));
  known.assessments = [...roles.keys()].every((id) => names.has(id))
    ? []
    : (await call("GET /tenants/assessments", {})).assessments.map((one) => ({
        id: one.tenantId,
        name: one.name,
        modifiedAt: one.createdAt,
        role: roles.get(one.tenantId) ?? "granted",
      }));
  const isLess = known.tenants.some((one) => !can(one.id, "write"));
  known.grants = isLess
    ? (await call("GET /config/grants", {}))._links.items.filter(
        (one) => one.grantee === known.person?.email,
      )
    : [];
  return known.tenants;
}

/** @param {string} tenant @returns {Set<string>} the scopes that grants give on it */
function granted(tenant) {
  const own = known.grants.filter((one) => one.resourceId === tenant);
  // No list says whose account a tenant is of. What neither a role nor a grant of its own opens is of a granted account.
  const isOpened = own.length > 0 || known.person?.roles.has(tenant);
  const grants = isOpened ? own : known.grants.filter((one) => one.resource === "account");
  return new Set(grants.flatMap((one) => one.permissions));
}

/**
 * Whether the user's role allows it: `member` reads logs, `statements` is not for auditors, `write` changes rules and configuration,
 * `cache` makes results stale (also by a grant), `users` sees names of users in reports, `people` sees
 * who else is in the tenant, `owner` changes that. A guest only reads.
 * @param {string} tenant
 * @param {Right} right
 * @returns {boolean}
 */
export function can(tenant, right) {
  const user = known.person;
  if (!user) return false;
  const role = user.roles.get(tenant) ?? "";
  // Support may do this on every tenant.
  if (right === "cache" && staff()) return true;
  const rank = { member: 1, admin: 2, owner: 3 }[role] ?? 0;
  if (right === "member") return rank > 0;
  if (right === "statements")
    return rank > 0 || user.role === "admin" || !!staff() || granted(tenant).has("analytics:read");
  // Staff see names of users while they have access to the log.
  if (right === "users") return staff() ? rank > 0 : can(tenant, "write");
  // The admin site shows staff the people of a tenant, with tokens and grants.
  if (right === "people") return !staff() && (rank > 1 || user.role === "admin");
  if (user.role === "admin") return true;
  if (user.role === "guest") return false;
  if (right === "cache" && rank > 0 && granted(tenant).has("cache-admin")) return true;
  return rank > (right === "owner" ? 2 : 1);
}

setScopeRule(async (tenant) => {
  if (tenant.includes(",")) return ["analytics:numbers"];
  await person();
  // Grants are read with the list of tenants.
  if (!can(tenant, "write")) await tenants();
  if (!can(tenant, "statements")) return AUDITOR;
  const scopes = ["config:read", "analytics:read"];
  if (can(tenant, "write")) scopes.push("config:write");
  if (can(tenant, "users")) scopes.push("analytics:users");
  if (can(tenant, "cache")) scopes.push("cache-admin");
  // To check numbers against the log.
  if (can(tenant, "member")) scopes.push("logs:query");
  return scopes;
});

/**
 * @param {string} tenant
 * @param {Contract.TenantConfigRequest} body
 * @param {string} [comment] why it changes
 */
export async function putConfig(tenant, body, comment) {
  await call("PUT /config/tenants/{tenant}/config", { tenant, body, comment });
  // Their names come from there.
  forgetTenants();
}
