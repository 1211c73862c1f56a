// What the Gateway did with a request: the name of each status, its colour, and what it means
// (docs/words.md).

import { given } from "./dom.js";
import { badge } from "./ui.js";

/**
 * @type {Record<string, [string, string]>} name and meaning, from the page of the service
 *   (logs/definitions.py)
 */
export const STATUSES = given("statuses") ?? {};

/**
 * @type {Texts} what requests, hits and misses are, as conditions of SQL, from the page of the
 *   service (logs/definitions.py)
 */
export const DEFINITIONS = given("definitions") ?? {};

/** @type {Texts} colours; a filter has the statuses in this order */
const COLOURS = {
  HIT: "good",
  MISS: "warn",
  BYPASS: "",
  PASSTHROUGH: "",
  HOLD: "info",
  BLOCKED: "bad",
  ERROR: "bad",
  INVALIDATION_ERROR: "bad",
  AUTH_ERROR: "bad",
  SPOOFED: "",
  TELEMETRY: "",
  EXECUTOR: "",
};

/** @type {Texts} why a request was a miss */
export const MISSES = {
  "ttl-expired": "expired",
  "no-cache-entry": "no result",
  "invalidation-marker": "invalidated",
};

/** @param {string} name what the status means, in a sentence */
export const meaning = (name) =>
  STATUSES[name] ? `${STATUSES[name][0]} (${name}): ${STATUSES[name][1]}` : name;

/** @param {string} name */
export const status = (name) =>
  Object.assign(badge(STATUSES[name]?.[0] ?? name, COLOURS[name]), { title: meaning(name) });

/** @type {[string, string][]} for a filter */
export const statusChoices = [
  ["", "any"],
  ...Object.keys(COLOURS).map(
    (name) => /** @type {[string, string]} */ ([name, STATUSES[name]?.[0] ?? name]),
  ),
];
