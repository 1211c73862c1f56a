// What the cache did in a year, a month or a day, with the changes that fell in it.

import { ApiError, call } from "../api.js";
import { chart, loadCharts } from "../charts.js";
import { h } from "../dom.js";
import { nothingYet, readSetup } from "../firsthour.js";
import * as f from "../format.js";
import { go, to } from "../router.js";
import { savingsTile } from "../savings.js";
import { a, badge, panel, table } from "../ui.js";
import { verdict } from "../verdict.js";

/** @typedef {import("../router.js").Context} Context */
/** @typedef {{name: string, day: string, hits: number, misses: number, rate: number | null}} Bucket */

/** @type {import("../router.js").Show} */
export async function show(context) {
  const period = context.query.get("period") ?? f.yesterday().slice(0, 7);
  const { tenant } = context;
  // It comes beside the data; a chart says if it does not.
  loadCharts().catch(() => {});
  try {
    const node = await (period.length === 4 ? year : period.length === 7 ? month : day)(context, period);
    return h("div", null, head(tenant, period), verdict(tenant), node);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    const last = context.query.has("period") ? "" : await lastMonth(tenant, period.slice(0, 4));
    if (last) {
      go(`/t/${tenant}/overview?period=${last}`);
      return h("div", null);
    }
    if (!context.query.has("period") && !(await readSetup(tenant, context.signal)).ready) {
      location.replace(to(tenant, "setup"));
      return h("div", null);
    }
    return h("div", null, head(tenant, period), nothingYet(tenant, "first-request", `There are no requests in ${f.periodName(period)}.`, "Hits, misses and times stand here some minutes after the Gateway has written its log."));
  }
}

/** @param {Contract.DayActivity} activity its date has slashes */
const dayOf = ({ date }) => date.replaceAll("/", "-");

/**
 * The newest month with data of a year or the year before.
 * @param {string} tenant
 * @param {string} thisYear
 */
async function lastMonth(tenant, thisYear) {
  for (const one of [thisYear, String(Number(thisYear) - 1)]) {
    try {
      const { last365daysQueryActivity: days } = await call("GET /tenants/{tenant}/summaries/{year}", { tenant, year: one });
      if (days.length) return dayOf(days[days.length - 1]).slice(0, 7);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
    }
  }
  return "";
}

/**
 * @param {string} tenant
 * @param {string} period
 */
function head(tenant, period) {
  const today = f.isoDay(new Date());
  const levels = [["Year", period.slice(0, 4)], ["Month", period.length >= 7 ? period.slice(0, 7) : `${period}-${today.slice(5, 7)}`],
    ["Day", period.length === 10 ? period : period.length === 7 && !f.yesterday().startsWith(period) ? `${period}-01` : f.yesterday()]];
  const step = (/** @type {number} */ by) => to(tenant, "overview", { period: shift(period, by) });
  return h("header", { class: "page-head" },
    h("div", null, h("h1", null, f.periodName(period)), h("p", { class: "muted" }, "Days and hours are in UTC.")),
    h("div", { class: "row" },
      h("nav", { class: "segments", "aria-label": "Length of the period" }, levels.map(([text, value]) =>
        h("a", { href: to(tenant, "overview", { period: value }), "aria-current": value.length === period.length && "page" }, text))),
      h("nav", { class: "segments", "aria-label": "Period" },
        h("a", { href: step(-1), "aria-label": "Earlier" }, "‹"), h("a", { href: step(1), "aria-label": "Later" }, "›"))));
}

/**
 * @param {string} period
 * @param {number} by
 */
export function shift(period, by) {
  if (period.length === 10) return f.addDays(period, by);
  if (period.length === 4) return String(Number(period) + by);
  const date = new Date(`${period}-01T00:00Z`);
  date.setUTCMonth(date.getUTCMonth() + by);
  return f.isoDay(date).slice(0, 7);
}

/**
 * @param {[string, string, string?][]} entries
 * @param {HTMLElement} [first]
 */
export const tiles = (entries, first) =>
  h("dl", { class: "tiles" }, first, entries.map(([name, value, note]) =>
    h("div", null, h("dt", null, name), h("dd", null, value, note && h("span", { class: "note" }, note)))));

/**
 * @param {Context} context
 * @param {string} label
 * @param {Bucket[]} buckets
 * @param {import("../charts.js").Mark[]} marks
 */
function traffic(context, label, buckets, marks) {
  const deeper = (/** @type {number} */ index) => {
    if (buckets[index].day) go(`/t/${context.tenant}/overview?period=${buckets[index].day}`);
  };
  return chart({
    label, labels: buckets.map((one) => one.name), marks, onLeave: context.onLeave, press: deeper,
    series: [
      { label: "Hits", values: buckets.map((one) => one.hits), colour: "hit", stack: "requests", show: f.compact },
      { label: "Misses", values: buckets.map((one) => one.misses), colour: "miss", stack: "requests", show: f.compact },
      { label: "Hit rate", values: buckets.map((one) => one.rate), colour: "rate", kind: "line", axis: "right", show: f.percent },
    ],
  });
}

/**
 * @param {Context} context
 * @param {string} period
 */
async function year(context, period) {
  const { tenant } = context;
  const [summary, history] = await Promise.all([
    call("GET /tenants/{tenant}/summaries/{year}", { tenant, year: period }),
    call("GET /config/tenants/{tenant}/rules/history", { tenant, limit: 200 }),
  ]);
  const days = summary.last365daysQueryActivity;
  const buckets = days.map((one) => ({ name: f.dayShort(dayOf(one)), day: dayOf(one), hits: one.cacheHits,
    misses: one.totalHits - one.cacheHits, rate: one.totalHits ? one.cacheHits / one.totalHits : null }));
  const marks = history.changes.flatMap((change) => {
    const index = buckets.findIndex((one) => one.day === change.changedAt.slice(0, 10));
    return index < 0 ? [] : [{ index, text: changeText("rules", change.seq, change.action, change.userId) }];
  });
  return [
    tiles([["Requests", f.compact(summary.totalHits)], ["Hit rate", f.ratio(summary.totalCacheHits, summary.totalHits)],
      ["Hits", f.compact(summary.totalCacheHits)], ["Statements", f.number(summary.totalQueries)],
      ["Users", f.number(summary.totalUsers)], ["Stored", f.bytes(summary.cacheSize)]], savingsTile(tenant, `${period}-01-01`, `${period}-12-31`)),
    panel("Requests by day", null, traffic(context, `Hits and misses by day in ${period}`, buckets, marks)),
  ].reduce((all, one) => (all.append(one), all), h("div", null));
}

/**
 * @param {Context} context
 * @param {string} period
 */
async function month(context, period) {
  const { tenant } = context;
  const [thisYear, thisMonth] = period.split("-");
  const from = `${period}-01`;
  const to_ = f.addDays(`${shift(period, 1)}-01`, -1);
  const [summary, timeline] = await Promise.all([
    call("GET /tenants/{tenant}/summaries/{year}/{month}", { tenant, year: thisYear, month: thisMonth }),
    call("GET /tenants/{tenant}/timeline", { tenant, from, to: to_, step: "day" }),
  ]);
  const { buckets, marks } = fromTimeline(timeline, (at) => f.dayShort(at), (at) => at.slice(0, 10));
  return h("div", null,
    tiles([
      ["Requests", f.compact(summary.totalHits)], ["Hit rate", f.ratio(summary.totalCacheHits, summary.totalHits)],
      ["Response, hit", f.duration(summary.cacheHitAverageResponseTime)], ["Response, miss", f.duration(summary.cacheMissAverageResponseTime)],
      ["From cache", f.bytes(summary.totalCachedBytes)], ["Uncached", f.bytes(summary.totalPassThroughBytes)],
      ["Statements", f.number(summary.totalQueries)], ["Users", f.number(summary.totalUsers)],
    ], savingsTile(tenant, from, to_)),
    panel("Requests by day", null, traffic(context, `Hits and misses by day, ${f.periodName(period)}`, buckets, marks)),
    h("div", { class: "columns" }, hours(context, summary.hourlyActivity, "by hour of day, mean of the month"), changes(tenant, timeline)));
}

/**
 * @param {Context} context
 * @param {string} period
 */
async function day(context, period) {
  const { tenant } = context;
  const [thisYear, thisMonth, thisDay] = period.split("-");
  const [summary, timeline] = await Promise.all([
    call("GET /tenants/{tenant}/summaries/{year}/{month}/{day}", { tenant, year: thisYear, month: thisMonth, day: thisDay }),
    call("GET /tenants/{tenant}/timeline", { tenant, from: period, to: period, step: "hour" }),
  ]);
  const { buckets, marks } = fromTimeline(timeline, (at) => at.slice(11, 16), () => "");
  return h("div", null,
    tiles([
      ["Requests", f.compact(summary.totalHits)], ["Hit rate", f.ratio(summary.cacheHits, summary.totalHits)],
      ["Response, hit", f.duration(summary.cacheHitAverageResponseTime)], ["Response, miss", f.duration(summary.cacheMissAverageResponseTime)],
      ["From cache", f.bytes(summary.cachedBytes)], ["Uncached", f.bytes(summary.passThroughBytes)],
      ["Statements", f.number(summary.queries.length)], ["Users", f.number(summary.uniqueUsers)],
    ], savingsTile(tenant, period, period)),
    panel("Requests by hour", a(to(tenant, "statements", { day: period }), "Statements of the day"),
      traffic(context, `Hits and misses by hour, ${f.periodName(period)}`, buckets, marks)),
    h("div", { class: "columns" }, hours(context, summary.hourlyActivity, "by hour"), changes(tenant, timeline)));
}

/**
 * @param {Contract.Timeline} timeline
 * @param {(at: string) => string} name
 * @param {(at: string) => string} deeper
 */
function fromTimeline(timeline, name, deeper) {
  const buckets = timeline.buckets.map((one) => ({ name: name(one.at), day: deeper(one.at), hits: one.hits, misses: one.misses, rate: one.hits + one.misses ? one.hits / (one.hits + one.misses) : null }));
  const marks = timeline.buckets.flatMap((one, index) => one.changes.map((change) => ({
    index, text: changeText(change.kind, change.seq, change.action, change.userId) })));
  return { buckets, marks };
}

/**
 * @param {string} kind
 * @param {number} seq
 * @param {string} action
 * @param {string} userId
 */
const changeText = (kind, seq, action, userId) =>
  `${kind === "rules" ? "Rules" : "Configuration"} ${seq}: ${action} by ${userId}`;

/**
 * @param {Context} context
 * @param {(Contract.HourActivity | Contract.MonthHourActivity)[]} activity
 * @param {string} note
 */
function hours(context, activity, note) {
  return panel("Response times", h("span", { class: "muted small" }, note), chart({
    label: `Response times ${note}`, short: true, onLeave: context.onLeave, labels: activity.map((one) => `${String(one.hour).padStart(2, "0")}:00`),
    series: [
      { label: "Miss", values: activity.map((one) => one.cacheMissAverageResponseTime || null), colour: "miss", kind: "line", show: f.duration },
      { label: "Hit", values: activity.map((one) => one.cacheHitAverageResponseTime || null), colour: "hit", kind: "line", show: f.duration },
    ],
  }));
}

/**
 * @param {string} tenant
 * @param {Contract.Timeline} timeline
 */
function changes(tenant, timeline) {
  const rows = timeline.buckets.flatMap((one) => one.changes).reverse();
  const markers = timeline.buckets.flatMap((one) => Object.values(one.markers)).reduce((sum, count) => sum + count, 0);
  return panel("Changes", h("span", { class: "muted small" }, `${f.number(markers)} invalidation markers`),
    rows.length ? table([
      { head: "When", cell: (row) => h("span", { title: f.inBothZones(row.changedAt) }, f.ago(row.changedAt)), class: "nowrap" },
      { head: "What", cell: (row) => [badge(row.kind, row.kind === "rules" ? "info" : ""), " ",
        a(to(tenant, "history", { kind: row.kind, seq: row.seq }), `${row.action} ${row.seq}`)], class: "nowrap" },
      { head: "Who", cell: (row) => row.userId, class: "clip" },
    ], rows, { label: "Changes", limit: 8 }) : h("p", { class: "pad muted" }, "No changes of rules or configuration."));
}
