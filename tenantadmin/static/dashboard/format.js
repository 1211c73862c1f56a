// Numbers, shares, durations, sizes, money and times, for people to read. The staff pages import
// them too.
//
// tenantadmin/lib/core/formats.py has these functions for Python; tests/formats.json holds both to
// the same texts.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en-US", {
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
});
const monthName = new Intl.DateTimeFormat("en-GB", {
  month: "long",
  year: "numeric",
  timeZone: "UTC",
});
const dayName = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  day: "numeric",
  month: "short",
  year: "numeric",
  timeZone: "UTC",
});
const shortDay = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  timeZone: "UTC",
});

export const NONE = "–";
const MINUS = "\u2212";

// Units, each with its size in the smallest.
/** @type {Units} */
const TIMES = [
  [1, "ms"],
  [1000, "s"],
  [60_000, "min"],
  [3_600_000, "h"],
];
/** @type {Units} */
const SIZES = [
  [1, "B"],
  [1e3, "kB"],
  [1e6, "MB"],
  [1e9, "GB"],
  [1e12, "TB"],
  [1e15, "PB"],
];
/** @type {Units} */
const SPANS = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];
/** @type {Units} */
const AGES = [
  [365 * 86_400, "year"],
  [30 * 86_400, "month"],
  [86_400, "day"],
  [3600, "hour"],
  [60, "minute"],
  [1, "second"],
];
// Fewer days are not shown as months.
const LEAST_MONTHS = 60 * 86_400;

/** @type {(value: number, text: string) => string} */
const signed = (value, text) => `${value < 0 && text !== "0" ? MINUS : ""}${text}`;

/** @param {number} value not negative @param {Units} units */
function scaled(value, units) {
  if (value > 0 && value < 1) return `<1 ${units[0][1]}`;
  for (const [index, [size, unit]] of units.entries()) {
    const inUnit = value / size;
    const text = (size === 1 || Number.isInteger(inUnit) ? whole : tenths).format(inUnit);
    // 59.96 s are not 60.0 s but a minute.
    const following = units[index + 1]?.[0];
    if (!following || Number(text.replaceAll(",", "")) * size < following) return `${text} ${unit}`;
  }
  return NONE;
}

/** @type {(value: Value, show: (value: number) => string) => string} with its sign */
export function difference(value, show) {
  if (value == null) return NONE;
  return value === 0 ? "no change" : `${value > 0 ? "+" : MINUS}${show(Math.abs(value))}`;
}

/** @param {number} value of a day, in UTC */
export const hour = (value) => `${String(value).padStart(2, "0")}:00`;

/** @param {Value} value without decimals: `2,276` */
export const number = (value) =>
  value == null ? NONE : signed(value, whole.format(Math.abs(value)));

/**
 * How many there are: `1 rule`, `2,276 rules`.
 * @param {number} value
 * @param {string} noun what is counted, one of it
 */
export const count = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;

/**
 * @param {Value} value a share of 0 to 1, with one decimal: `42.9%`; only all is `100%`, and only
 *   none is `0%`
 */
export function percent(value) {
  if (value == null) return NONE;
  if (value === 0 || value === 1) return value ? "100%" : "0%";
  if (value > 0 && value < 0.0005) return "<0.1%";
  if (value >= 0.9995 && value < 1) return ">99.9%";
  return signed(value, `${tenths.format(100 * Math.abs(value))}%`);
}

/** @type {(part: number, all: number) => string} */
export const ratio = (part, all) => percent(all ? part / all : null);

/** @param {Value} value a difference of two shares: `+1.3 points` */
export const points = (value) =>
  difference(value, (it) => (it < 0.0005 ? "<0.1 points" : `${tenths.format(100 * it)} points`));

/**
 * @param {Value} ms in the largest unit that fits: `2.4 h`; without a decimal it is exact: `2 h`
 */
export const duration = (ms) => (ms == null ? NONE : signed(ms, scaled(Math.abs(ms), TIMES)));

/**
 * @param {Value} seconds seconds exactly, in the largest unit that divides them: `90 s`, `2 min`
 */
export function span(seconds) {
  if (seconds == null) return NONE;
  const [size, unit] = SPANS.find(([it]) => seconds && seconds % it === 0) ?? SPANS[3];
  return `${number(seconds / size)} ${unit}`;
}

/** @param {Value} value bytes in the largest unit that fits, of 1,000 each: `1.5 MB` */
export const bytes = (value) =>
  value == null ? NONE : signed(value, scaled(Math.abs(value), SIZES));

/**
 * @param {string | null | undefined} amount
 * @param {string} currency an amount, which is decimal text with all its digits: `1,234.50 USD`
 */
export function money(amount, currency) {
  if (amount == null) return NONE;
  const [, minus, digits, decimals] = /^(-?)(\d+)(\.\d+)?$/.exec(amount) ?? [];
  if (digits === undefined) return NONE;
  const isNone = /^[0.]*$/.test(digits + (decimals ?? ""));
  return `${minus && !isNone ? MINUS : ""}${whole.format(BigInt(digits))}${decimals ?? ""} ${currency}`;
}

/** @param {Value} value a difference of two numbers: `+40` */
export const change = (value) => difference(value, (it) => (it < 0.5 ? "<1" : number(it)));

/** @param {Value} value a difference of two durations in milliseconds: `−34.1 s` */
export const durationChange = (value) => difference(value, duration);

/** @param {string} text a saving as a number: `53 s`, or `costs 53 s more` in place of a minus */
export const saving = (text) => (text.startsWith(MINUS) ? `costs ${text.slice(1)} more` : text);

/**
 * @param {{low: number, likely?: number | null, high: number}} bounds
 * @param {(value: number) => string} [show] `≈ 12 (9 to 15)`, or `≈ 12` if both bounds are shown so
 */
export function range({ low, likely = null, high }, show = number) {
  if (low === high) return show(low);
  const [least, middle, most] = [low, likely ?? 0, high].map((value) =>
    value ? show(value) : "0",
  );
  if (least === most) return `≈ ${least}`;
  return likely === null ? `${least} to ${most}` : `≈ ${middle} (${least} to ${most})`;
}

const ZONE_KEY = "times";

/** The zone of the browser. */
const ownZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** The zone in which the reader wants times: UTC, or the zone of the browser. */
export const zone = () => localStorage.getItem(ZONE_KEY) ?? ownZone();

/** @param {boolean} isUtc */
export const chooseUtc = (isUtc) =>
  isUtc ? localStorage.setItem(ZONE_KEY, "UTC") : localStorage.removeItem(ZONE_KEY);

/** @type {Map<string, Intl.DateTimeFormat>} */
/** @type {Record<string, Intl.DateTimeFormat>} */
const clocks = {};

/**
 * @param {Date} date
 * @param {string} inZone a time in a zone, and the short name of the zone: `2026-11-24 23:34:10`,
 *   `CET`
 */
function timeIn(date, inZone) {
  const clock = (clocks[inZone] ??= new Intl.DateTimeFormat("en-GB", {
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hourCycle: "h23",
    timeZoneName: "short",
    timeZone: inZone,
  }));
  const by = Object.fromEntries(clock.formatToParts(date).map(({ type, value }) => [type, value]));
  return [
    `${by.year.padStart(4, "0")}-${by.month}-${by.day} ${by.hour}:${by.minute}:${by.second}`,
    by.timeZoneName,
  ];
}

/**
 * To the second, with the zone: `2026-11-24 23:34:10 UTC`; as it is if no date can hold it.
 * @param {Time} value
 * @param {string} [inZone] the reader's own, if it is not given
 */
export function when(value, inZone = zone()) {
  if (value == null) return NONE;
  const date = new Date(value);
  if (isNaN(+date)) return String(value);
  return timeIn(date, inZone).join(" ");
}

/** @param {number} ofDay an hour in UTC, as the reader's clock shows it: `00:00 to 01:00 CET` */
export function hourHere(ofDay) {
  const [[from, name], [to]] = [0, 1].map((more) =>
    timeIn(new Date(new Date().setUTCHours(ofDay + more, 0, 0, 0)), zone()),
  );
  return `${from.slice(11, 16)} to ${to.slice(11, 16)} ${name}`;
}

/** @param {Time} value in UTC and in the browser's zone, for a tooltip */
export function inBothZones(value) {
  const date = new Date(value ?? NaN);
  if (isNaN(+date)) return "";
  return [...new Set(["UTC", ownZone()])].map((it) => `${timeIn(date, it)[0]} ${it}`).join("\n");
}

/**
 * How long ago a time was, or how far ahead it is: `8 days ago`, `in 3 hours`. Days are those of
 * the calendar.
 * @param {Time} value
 * @param {number} [now] milliseconds since 1970
 * @param {string} [inZone] the reader's own, if it is not given
 */
export function ago(value, now = Date.now(), inZone = zone()) {
  if (value == null) return NONE;
  const at = new Date(value);
  const passed = now - +at;
  const seconds = Math.round(Math.abs(passed) / 1000);
  for (const [index, [size, unit]] of AGES.slice(0, -1).entries()) {
    // 59.5 minutes are an hour, and not 60 minutes.
    if (seconds + AGES[index + 1][0] / 2 >= (unit === "month" ? LEAST_MONTHS : size)) {
      const [first, last] = [at, new Date(now)].map((it) =>
        Date.parse(timeIn(it, inZone)[0].slice(0, 10)),
      );
      const units = (unit === "day" ? Math.abs(last - first) / 1000 : seconds) / size;
      const text = count(Math.max(Math.round(units), 1), unit);
      return passed > 0 ? `${text} ago` : `in ${text}`;
    }
  }
  // Also up to a minute ahead: clocks differ.
  return "just now";
}

/** @param {string} period `2026`, `2026-11` or `2026-11-22` */
export function periodName(period) {
  if (period.length === 4) return period;
  if (period.length === 7) return monthName.format(new Date(period));
  return dayName.format(new Date(period));
}

/** @param {string} day */
export const dayShort = (day) => shortDay.format(new Date(day.slice(0, 10)));

/** @param {Date} date */
export const isoDay = (date) => date.toISOString().slice(0, 10);

/** @param {string} day @param {number} days */
export const addDays = (day, days) => isoDay(new Date(Date.parse(day) + days * 86_400_000));

/** In UTC. */
export const today = () => isoDay(new Date());

/** In UTC: the last day that is whole. */
export const yesterday = () => addDays(today(), -1);
