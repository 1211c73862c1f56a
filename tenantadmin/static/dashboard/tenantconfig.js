// Write the configuration of a tenant.

import { ApiError, call } from "./api.js";
import { forgetTenants } from "./people.js";

/** @param {string} tenant @param {Contract.TenantConfigRequest} body @param {string} [comment] why it changes */
export async function putConfig(tenant, body, comment) {
  try {
    await call("PUT /config/tenants/{tenant}/config", { tenant, body, comment });
  } catch (error) {
    const where = error instanceof ApiError && error.status === 400 ? error.body?.details?.[0] : null;
    throw where ? new Error(`${where.path}: ${where.message}`) : error;
  }
  // Their names come from there.
  forgetTenants();
}
