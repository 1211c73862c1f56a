// Numbers, sizes and times in the reader's locale. Days and hours of the log are UTC, and stay so.

const whole = new Intl.NumberFormat();
const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const share = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });
const oneDigit = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const monthName = new Intl.DateTimeFormat(undefined, { month: "long", year: "numeric", timeZone: "UTC" });
const dayName = new Intl.DateTimeFormat(undefined, {
  weekday: "short", day: "numeric", month: "short", year: "numeric", timeZone: "UTC",
});
const shortDay = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

export const NONE = "–";

/** @param {number | null | undefined} value */
export const number = (value) => (value === null || value === undefined ? NONE : whole.format(value));

/**
 * @param {number} value
 * @param {string} noun what is counted, one of it
 */
export const count = (value, noun) => `${whole.format(value)} ${noun}${value === 1 ? "" : "s"}`;

/** @param {number | null | undefined} value */
export const compact = (value) =>
  value === null || value === undefined ? NONE : value < 10_000 ? whole.format(value) : short.format(value);

/**
 * Only all is 100 %, and only none is 0 %.
 * @param {number | null | undefined} value of 0 to 1
 */
export function percent(value) {
  if (value === null || value === undefined) return NONE;
  if (value > 0 && value < 0.0005) return `<${share.format(0.001)}`;
  if (value >= 0.9995 && value < 1) return `>${share.format(0.999)}`;
  return share.format(value);
}

/**
 * @param {number} part
 * @param {number} all
 */
export const ratio = (part, all) => (all ? percent(part / all) : NONE);

/** @param {number | null | undefined} value */
export function bytes(value) {
  if (value === null || value === undefined) return NONE;
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${oneDigit.format(value)} ${units[unit]}`;
}

/** @param {number | null | undefined} ms */
export function duration(ms) {
  if (ms === null || ms === undefined) return NONE;
  if (ms < 1000) return `${whole.format(Math.round(ms))} ms`;
  if (ms < 60_000) return `${oneDigit.format(ms / 1000)} s`;
  if (ms < 3_600_000) return `${oneDigit.format(ms / 60_000)} min`;
  return `${oneDigit.format(ms / 3_600_000)} h`;
}

/** @param {number | null | undefined} seconds */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return NONE;
  if (seconds % 86_400 === 0) return `${whole.format(seconds / 86_400)} d`;
  if (seconds % 3600 === 0) return `${whole.format(seconds / 3600)} h`;
  if (seconds % 60 === 0) return `${whole.format(seconds / 60)} min`;
  return `${whole.format(seconds)} s`;
}

/** @param {string | number | null | undefined} value a time, in the reader's zone; as it is if no date can hold it */
export function when(value) {
  if (value === null || value === undefined) return NONE;
  const date = new Date(value);
  return Number.isNaN(date.getTime()) ? String(value) : moment.format(date);
}

/** @param {string | number | null | undefined} value */
export function ago(value) {
  if (value === null || value === undefined) return NONE;
  const seconds = (new Date(value).getTime() - Date.now()) / 1000;
  for (const [unit, size] of /** @type {const} */ ([["day", 86_400], ["hour", 3600], ["minute", 60]])) {
    if (Math.abs(seconds) >= size) return relative.format(Math.round(seconds / size), unit);
  }
  return relative.format(0, "minute");
}

/** @param {string} period `2026`, `2026-11` or `2026-11-22` */
export function periodName(period) {
  if (period.length === 4) return period;
  if (period.length === 7) return monthName.format(new Date(`${period}-01T00:00Z`));
  return dayName.format(new Date(`${period}T00:00Z`));
}

/** @param {string} day */
export const dayShort = (day) => shortDay.format(new Date(`${day.slice(0, 10)}T00:00Z`));

/** @param {Date} date */
export const isoDay = (date) => date.toISOString().slice(0, 10);

/**
 * @param {string} day
 * @param {number} days
 */
export function addDays(day, days) {
  const date = new Date(`${day}T00:00Z`);
  date.setUTCDate(date.getUTCDate() + days);
  return isoDay(date);
}

/** Yesterday in UTC: the last day that is whole. */
export const yesterday = () => addDays(isoDay(new Date()), -1);
