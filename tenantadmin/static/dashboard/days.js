// Which days have requests, and what leads on from a day without.

import { call } from "./api.js";
import { nothingYet } from "./firsthour.js";
import * as f from "./format.js";
import { a, go, input, stepper, to } from "./ui.js";

/**
 * @param {string} tenant
 * @param {string} [from]
 * @param {string} [until] the last 28 days up to the last with requests, if they are not given
 */
export const readActivity = (tenant, from, until) =>
  call("GET /tenants/{tenant}/activity", { tenant, from, to: until });

/**
 * @param {string} tenant @param {string} title
 * @param {string | null} last the last day with requests
 * @param {(day: string) => string} at the page of a day
 * @param {string} [note]
 */
export const emptyDay = (
  tenant,
  title,
  last,
  at,
  note = "The figures come some minutes after the Gateway has written its log.",
) =>
  nothingYet(
    tenant,
    "first-request",
    title,
    last ? ["Last day with requests: ", a(at(last), f.periodName(last))] : "",
    note,
  );

/**
 * @param {string} tenant
 * @param {string} page
 * @param {string} day
 * @param {string | null} last
 * @param {Record<string, string>} [query] of the address
 * @param {number} [step] days
 */
export function dayPicker(tenant, page, day, last, query = {}, step = 1) {
  const at = (/** @type {string} */ value) => to(tenant, page, { ...query, day: value });
  const picker = input("day", day, {
    type: "date",
    max: f.today(),
    "aria-label": "Day",
    onchange: () => picker.value && go(at(picker.value)),
  });
  return [
    picker,
    stepper("Day", at, f.addDays(day, -step), f.addDays(day, step), last ?? f.yesterday()),
  ];
}
