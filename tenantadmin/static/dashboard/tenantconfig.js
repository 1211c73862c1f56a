// Write the configuration of a tenant.

import { ApiError, call } from "./api.js";
import { forgetTenants } from "./people.js";

/** @param {string} tenant @param {Contract.TenantConfigRequest} body @param {string} [comment] why it changes */
export async function putConfig(tenant, body, comment) {
  try {
    await call("PUT /config/tenants/{tenant}/config", { tenant, body, comment });
  } catch (error) {
    const where = error instanceof ApiError && error.status === 400 ? error.body?.details?.[0] : null;
    if (!where) throw error;
    // `/warehouse/pricing/1/perHour` is the second field of this name.
    const parts = where.path.split("/");
    const name = parts.findLast((/** @type {string} */ part) => /\D/.test(part));
    /** @type {NodeListOf<HTMLElement>} */
    const inputs = document.querySelectorAll(`main [name="${name}"]`);
    const input = inputs[Number(parts.find((/** @type {string} */ part) => /^\d+$/.test(part)) ?? 0)] ?? inputs[0];
    input?.focus();
    const label = input?.closest("label")?.querySelector(".label")?.textContent;
    throw new Error(label ? `${label}: ${where.message}` : where.message);
  }
  // Their names come from there.
  forgetTenants();
}
