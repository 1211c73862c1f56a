// What a tenant still needs before its first hit.

import { call } from "./api.js";
import { a, empty, fill, h, to } from "./ui.js";

/** @type {Record<StepId, string>} */
export const STEPS = {
  address: "The address of your Gateway",
  warehouse: "The warehouse behind it",
  token: "A token for the Gateway",
  "first-request": "The first request",
  "first-rule": "The first rule",
  "first-hit": "The first hit",
  people: "People",
};

/** @type {Map<string, Contract.Setup>} */
const known = new Map();

/**
 * Read what is done. What was ready once is not asked again in this tab.
 * @param {string} tenant
 * @param {AbortSignal} [signal]
 */
export async function readSetup(tenant, signal) {
  const ready = known.get(tenant);
  if (ready?.ready) return ready;
  const setup = await call("GET /tenants/{tenant}/setup", { tenant }, { signal });
  known.set(tenant, setup);
  const link = document.getElementById("first-steps");
  if (setup.ready) link?.remove();
  else link?.querySelector("span")?.replaceChildren(progress(setup));
  return setup;
}

/** @param {Contract.Setup} setup the text of the link in the menu */
export const progress = ({ steps }) =>
  `First steps, ${steps.filter((one) => one.done).length} of ${steps.length}`;

/** @param {string} tenant what was read last, if anything was */
export const knownSetup = (tenant) => known.get(tenant);

/**
 * What stands where there is nothing yet, and the step that leads to it.
 * @param {string} tenant
 * @param {StepId} step
 * @param {string} title
 * @param {...Child} more
 */
export function nothingYet(tenant, step, title, ...more) {
  const lead = h("p");
  readSetup(tenant).then(
    ({ steps }) => {
      const next = steps.find((one) => !one.done);
      if (next && steps.some((one) => one.id === step && !one.done))
        fill(lead, "Next: ", a(to(tenant, "setup", { step: next.id }), STEPS[next.id]));
    },
    () => {},
  );
  return empty(title, ...more.map((one) => h("p.muted", one)), lead);
}
