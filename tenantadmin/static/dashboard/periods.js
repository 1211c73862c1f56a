// Periods of a page: a year, a month, or a number of days up to one.

import * as f from "./format.js";
import { pageHead, stepper, tabs } from "./ui.js";

/** @param {string} period @param {number} by */
export function shift(period, by) {
  if (period.length === 10) return f.addDays(period, by);
  if (period.length === 4) return String(Number(period) + by);
  const date = new Date(`${period}-01T00:00Z`);
  date.setUTCMonth(date.getUTCMonth() + by);
  return f.isoDay(date).slice(0, 7);
}

/**
 * @param {string} period
 * @param {number} days if it is a day, the last of so many
 * @returns {[string, string]} its first and last day
 */
export function daysOf(period, days) {
  if (period.length === 10) return [f.addDays(period, 1 - days), period];
  const first = (/** @type {string} */ it) => `${it}-01-01`.slice(0, 10);
  return [first(period), f.addDays(first(shift(period, 1)), -1)];
}

/** @param {string} period @param {number} days */
export const nameOf = (period, days) =>
  days > 1 ? daysOf(period, days).map(f.periodName).join(" to ") : f.periodName(period);

/** @param {string} period @param {number} days */
export const noRequestsIn = (period, days) =>
  `There are no requests ${days > 1 ? "in these days" : `${period.length === 10 ? "on" : "in"} ${f.periodName(period)}`}.`;

/** @param {string} period @param {number} days @returns {Texts} the period in an address */
export const inAddress = (period, days) => ({
  period,
  ...(period.length === 10 && days > 1 && { days: String(days) }),
});

/**
 * The head of the page, with links to other lengths and to the periods before and after.
 * @param {Child} title @param {Child} below
 * @param
 *   {{period: string, days: number, newest: string, last: string, at: (period: Texts) => string}}
 *   chosen `newest`: the day to which shorter lengths lead; `last`: the last there is
 */
export function periodHead(title, below, { period, days, newest, last, at }) {
  const month = period.length === 4 ? newest.slice(0, 7) : period.slice(0, 7);
  const lengths = /** @type {[string, string, number][]} */ ([
    ["Day", newest, 1],
    ["7 days", last, 7],
    ["28 days", last, 28],
    ["Month", month, 1],
    ["Year", period.slice(0, 4), 1],
  ]);
  return pageHead(
    title,
    below,
    tabs(
      lengths.map(([text, value, many]) => [
        at(inAddress(value, many)),
        text,
        value.length === period.length && many === days,
      ]),
      "Length of the period",
      "segments",
    ),
    stepper(
      "Period",
      (value) => at(inAddress(value, days)),
      shift(period, -days),
      shift(period, days),
      last,
    ),
  );
}
