// What is new since the last visit in this browser.

/**
 * What was open at the visit before this one, by tenant. It is read once, so that marks stay until
 * the dashboard is loaded again.
 * @type {Map<string, Set<string> | null>}
 */
const seen = new Map();

/**
 * @param {string} tenant @param {Contract.Recommendation[]} open
 * @returns {Contract.Recommendation[]} those that are new since the last visit in this browser
 */
export function unseen(tenant, open) {
  const key = `recommendations.${tenant}`;
  if (!seen.has(tenant)) {
    const kept = localStorage.getItem(key);
    seen.set(tenant, kept === null ? null : new Set(kept.split(" ")));
  }
  const before = seen.get(tenant);
  localStorage.setItem(key, open.map((one) => one.recommendationId).join(" "));
  return before ? open.filter((one) => !before.has(one.recommendationId)) : [];
}
