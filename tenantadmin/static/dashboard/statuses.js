// What the Gateway did with a request: the name of each status, its colour, and what it means (docs/words.md).

import { badge } from "./ui.js";

/** @type {Record<string, [string, string, string]>} */
export const STATUSES = {
  HIT: ["Hit", "good", "The result came from the cache. The warehouse did nothing."],
  MISS: ["Miss", "warn", "A rule caches this, but no valid result was stored. The warehouse ran it, and its result was stored."],
  BYPASS: ["Bypassed", "", "A rule matched and did not use the cache. The warehouse ran it."],
  PASSTHROUGH: ["Passed through", "", "No rule matched. The warehouse ran it, and nothing was stored."],
  HOLD: ["Waited", "info", "The same statement was already running. This request waited for its result."],
  BLOCKED: ["Blocked", "bad", "A rule refuses this statement. It did not reach the warehouse."],
  ERROR: ["Failed", "bad", "The warehouse answered with an error."],
  INVALIDATION_ERROR: ["Not recorded", "bad", "Refused, because the results that it makes stale could not be marked."],
  AUTH_ERROR: ["Token refused", "bad", "The token of the request was not valid."],
  SPOOFED: ["Gateway's answer", "", "The Gateway knew the answer itself, without cache or warehouse."],
  TELEMETRY: ["Telemetry", "", "The client sent a report about itself, and no statement."],
  EXECUTOR: ["Progress", "", "The client asked about a statement that was running."],
};

/** @type {Texts} why a request was a miss */
export const MISSES = { "ttl-expired": "expired", "no-cache-entry": "no result", "invalidation-marker": "invalidated" };

/** @param {string} name what the status means, in a sentence */
export const meaning = (name) => (STATUSES[name] ? `${STATUSES[name][0]} (${name}): ${STATUSES[name][2]}` : name);

/** @param {string} name */
export const status = (name) => Object.assign(badge(STATUSES[name]?.[0] ?? name, STATUSES[name]?.[1]), { title: meaning(name) });

/** @type {[string, string][]} for a filter */
export const statusChoices = [["", "any"], ...Object.entries(STATUSES).map(([name, [text]]) => /** @type {[string, string]} */ ([name, text]))];
