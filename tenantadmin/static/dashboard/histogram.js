// The requests of a span over time, above their list. A bar, or a drag over several, leads into it.

import { call } from "./api.js";
import { chart } from "./charts.js";
import { addDays, duration, number, periodName, when } from "./format.js";
import { a, fine, go, h, panel, showIn, to } from "./ui.js";

/** @typedef {Contract.RequestHistogram} Histogram */
/** @typedef {Contract.RequestBucket} Bucket */

/** Earlier spans to compare with, by the days before. */
const EARLIER = /** @type {const} */ ([
  ["1", "the day before"],
  ["7", "the week before"],
]);
const DAY = 86_400_000;

/** @param {string} moment a day, or a date-time */
const isDay = (moment) => moment.length === 10;

/** @param {string} moment a day, or a date-time @param {number} ms */
export const later = (moment, ms) =>
  isDay(moment) ? addDays(moment, ms / DAY) : new Date(Date.parse(moment) + ms).toISOString();

/** @param {Texts} chosen the day of its `from`, and the last day that its `to` has */
export const daysOf = ({ from, to: until }) => [
  from.slice(0, 10),
  isDay(until) ? until : new Date(Date.parse(until) - 1).toISOString().slice(0, 10),
];

/**
 * @param {Context} context
 * @param {Texts} chosen the span and the filters of the page
 * @returns {HTMLElement} empty until its numbers are there
 */
export function histogram({ tenant, signal }, chosen) {
  const { from, to: until, compare, sort: _, cursor: __, ...matching } = chosen;
  const earlier = EARLIER.find(([days]) => days === compare);
  const box = h("div");
  const at = (/** @type {Texts} */ change) =>
    to(tenant, "traffic", { ...chosen, cursor: "", ...change });
  const read = (/** @type {number} */ days) =>
    call(
      "GET /tenants/{tenant}/requests/histogram",
      {
        tenant,
        .../** @type {any} */ (matching),
        from: later(from, -days * DAY),
        to: later(until, -days * DAY),
      },
      { signal },
    );
  showIn(
    async () => draw(...(await Promise.all([read(0), earlier ? read(Number(earlier[0])) : null]))),
    box,
  );
  return box;

  /** @param {Histogram} now @param {Histogram | null} before */
  function draw(now, before) {
    const ms = now.stepSeconds * 1000;
    const { buckets } = now;
    const labels = buckets.map(({ at: begins }) => nameOf(begins, now.stepSeconds, buckets.length));
    const press = (/** @type {number} */ first, /** @type {number} */ last) =>
      go(at({ from: buckets[first].at, to: later(buckets[last].at, ms) }));
    const stacked = /** @type {[string, string, (one: Bucket) => number][]} */ ([
      ["Hits", "hit", (one) => one.hits],
      ["Misses", "miss", (one) => one.misses - one.notCached],
      ["Not cached", "not-cached", (one) => one.notCached],
      ["Errors", "bad", (one) => one.errors],
    ]).map(([label, colour, of]) => ({
      label,
      colour,
      values: buckets.map(of),
      stack: "requests",
      show: number,
    }));
    const [first, last] = daysOf(chosen);
    const line = (
      /** @type {string} */ label,
      /** @type {Histogram} */ of,
      /** @type {"entries" | "p95Ms" | "medianMs"} */ key,
      /** @type {string} */ colour,
    ) => ({
      label,
      values: of.buckets.map((one) => one[key]),
      colour,
      kind: /** @type {const} */ ("line"),
      show: key === "entries" ? number : duration,
    });
    return panel(
      "When",
      [
        !isDay(from) && [
          a(at(shifted(-1)), "Earlier"),
          a(at(shifted(1)), "Later"),
          a(at({ from: first, to: last }), "Whole days"),
        ],
        EARLIER.map(([days, name]) =>
          days === compare
            ? a(at({ compare: "" }), `Without ${name}`)
            : a(at({ compare: days }), `Compare with ${name}`),
        ),
      ],
      !isDay(from) &&
        h("p.pad", `${when(from)} to ${isDay(until) ? periodName(until) : when(until)}`),
      chart({
        label: "Requests over time",
        labels,
        signal,
        press,
        series: [
          ...stacked,
          ...(before ? [line(`All, ${earlier?.[1]}`, before, "entries", "rate")] : []),
        ],
      }),
      chart({
        label: "Response times over time",
        labels,
        signal,
        press,
        short: true,
        series: [
          line("95% within", now, "p95Ms", "miss"),
          line("Half within", now, "medianMs", "hit"),
          ...(before ? [line(`95% within, ${earlier?.[1]}`, before, "p95Ms", "rate")] : []),
        ],
      }),
      h(
        "div.pad",
        fine(
          "Press a bar, or drag over several, to see what was then. Response times are of hits and misses.",
          now.outside > 0 &&
            ` Not shown: ${number(now.outside)} whose time is unknown or on another day.`,
        ),
      ),
    );
  }

  /** @param {number} sign the span of the same length before or after */
  function shifted(sign) {
    const end = isDay(until) ? Date.parse(until) + DAY : Date.parse(until);
    const length = end - Date.parse(from);
    return { from: later(from, sign * length), to: new Date(end + sign * length).toISOString() };
  }
}

/** @param {string} at @param {number} seconds of a bucket @param {number} count of all buckets */
function nameOf(at, seconds, count) {
  if (seconds >= DAY / 1000) return at.slice(0, 10);
  const text = when(at);
  const time = text.slice(11, seconds < 60 ? 19 : 16);
  return seconds * count > DAY / 1000 ? `${text.slice(5, 10)} ${time}` : time;
}
