// What the cache did in a year, a month or a day, with the changes that fell in it.

import { call, hasStatus } from "../api.js";
import { chart, loadCharts } from "../charts.js";
import { nothingYet, readSetup } from "../firsthour.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { savingsTile } from "../savings.js";
import { a, age, badge, beside, go, h, pageHead, panel, stepper, tablePanel, tabs, text, to } from "../ui.js";
import { verdict } from "../verdict.js";

/** @typedef {{name: string, day: string, hits: number, misses: number, rate: number | null}} Bucket */

/** @type {(name: string, day: string, hits: number, misses: number) => Bucket} */
const bucket = (name, day, hits, misses) => ({ name, day, hits, misses, rate: hits + misses ? hits / (hits + misses) : null });

/** @type {Show} */
export async function show(context) {
  const period = context.query.get("period") ?? f.yesterday().slice(0, 7);
  const { tenant } = context;
  // It comes beside the data; a chart says if it does not.
  loadCharts().catch(() => {});
  try {
    const node = await (period.length === 4 ? year : period.length === 7 ? month : day)(context, period);
    return h("div", head(tenant, period), f.yesterday().startsWith(period) && verdict(tenant), node);
  } catch (error) {
    if (!hasStatus(error, 404)) throw error;
    const last = context.query.has("period") ? "" : await lastMonth(tenant, period.slice(0, 4));
    if (last) {
      go(to(tenant, "overview", { period: last }));
      return h("div");
    }
    if (!context.query.has("period") && !(await readSetup(tenant, context.signal)).ready) {
      location.replace(to(tenant, "setup"));
      return h("div");
    }
    return h("div", head(tenant, period), nothingYet(tenant, "first-request", `There are no requests ${period.length > 7 ? "on" : "in"} ${f.periodName(period)}.`, "The figures come some minutes after the Gateway has written its log."));
  }
}

/** @param {Contract.DayActivity} activity its date has slashes */
const dayOf = ({ date }) => date.replaceAll("/", "-");

/** @param {string} tenant @param {string} thisYear the newest month with data of a year or the year before */
async function lastMonth(tenant, thisYear) {
  for (const one of [thisYear, String(Number(thisYear) - 1)]) {
    try {
      const { last365daysQueryActivity: days } = await call("GET /tenants/{tenant}/summaries/{year}", { tenant, year: one });
      if (days.length) return dayOf(days[days.length - 1]).slice(0, 7);
    } catch (error) {
      if (!hasStatus(error, 404)) throw error;
    }
  }
  return "";
}

/** @param {string} tenant @param {string} period */
function head(tenant, period) {
  const today = f.today();
  const levels = /** @type {const} */ ([["Year", period.slice(0, 4)], ["Month", period.length >= 7 ? period.slice(0, 7) : `${period}-${today.slice(5, 7)}`],
    ["Day", period.length === 10 ? period : period.length === 7 && !f.yesterday().startsWith(period) ? `${period}-01` : f.yesterday()]]);
  const at = (/** @type {string} */ value) => to(tenant, "overview", { period: value });
  return pageHead(f.periodName(period), "Days and hours are in UTC.",
    tabs(levels.map(([text, value]) => [at(value), text, value.length === period.length]), "Length of the period", "segments"),
    stepper("Period", at, shift(period, -1), shift(period, 1)));
}

/** @param {string} period @param {number} by */
export function shift(period, by) {
  if (period.length === 10) return f.addDays(period, by);
  if (period.length === 4) return String(Number(period) + by);
  const date = new Date(`${period}-01T00:00Z`);
  date.setUTCMonth(date.getUTCMonth() + by);
  return f.isoDay(date).slice(0, 7);
}

/** @param {[string, string, string?][]} entries @param {HTMLElement} [first] */
export const tiles = (entries, first) =>
  h("dl.tiles", first, entries.map(([name, value, note]) =>
    h("div", h("dt", name), h("dd", value, note && h("span.note", note)))));

/** @param {Context} context @param {string} label @param {Bucket[]} buckets @param {Mark[]} marks */
function traffic(context, label, buckets, marks) {
  const deeper = (/** @type {number} */ index) => {
    if (buckets[index].day) go(to(context.tenant, "overview", { period: buckets[index].day }));
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

/** @param {Context} context @param {string} period */
async function year(context, period) {
  const { tenant } = context;
  const [summary, history] = await Promise.all([
    call("GET /tenants/{tenant}/summaries/{year}", { tenant, year: period }),
    call("GET /config/tenants/{tenant}/rules/history", { tenant, limit: 200 }),
  ]);
  const days = summary.last365daysQueryActivity;
  const buckets = days.map((one) => bucket(f.dayShort(dayOf(one)), dayOf(one), one.cacheHits, one.totalHits - one.cacheHits));
  const marks = history.changes.flatMap((change) => {
    const index = buckets.findIndex((one) => one.day === change.changedAt.slice(0, 10));
    return index < 0 ? [] : [{ index, text: changeText("rules", change.seq, change.action, change.userId) }];
  });
  return h("div",
    tiles([["Requests", f.compact(summary.totalHits)], ["Hit rate", f.ratio(summary.totalCacheHits, summary.totalHits)],
      ["Hits", f.compact(summary.totalCacheHits)], ["Statements cached", f.number(summary.totalQueries)],
      ["Users", f.number(summary.totalUsers)], ["Stored", f.bytes(summary.cacheSize)]], savingsTile(tenant, `${period}-01-01`, `${period}-12-31`)),
    panel("Requests by day", null, traffic(context, `Hits and misses by day in ${period}`, buckets, marks)));
}

/** @param {Context} context @param {string} period */
async function month(context, period) {
  const { tenant } = context;
  const [thisYear, thisMonth] = period.split("-");
  const [from, last] = [`${period}-01`, f.addDays(`${shift(period, 1)}-01`, -1)];
  const [it, timeline] = await Promise.all([
    call("GET /tenants/{tenant}/summaries/{year}/{month}", { tenant, year: thisYear, month: thisMonth }),
    call("GET /tenants/{tenant}/timeline", { tenant, from, to: last, step: "day" }),
  ]);
  return body(context, it, timeline, [it.totalCacheHits, it.totalCachedBytes, it.totalPassThroughBytes, it.totalQueries, it.totalUsers], savingsTile(tenant, from, last),
    panel("Requests by day", null, traffic(context, `Hits and misses by day, ${f.periodName(period)}`, ...fromTimeline(timeline, f.dayShort, (at) => at.slice(0, 10)))), "by hour of day, mean of the month");
}

/** @param {Context} context @param {string} period */
async function day(context, period) {
  const { tenant } = context;
  const [thisYear, thisMonth, thisDay] = period.split("-");
  const [it, timeline] = await Promise.all([
    call("GET /tenants/{tenant}/summaries/{year}/{month}/{day}", { tenant, year: thisYear, month: thisMonth, day: thisDay }),
    call("GET /tenants/{tenant}/timeline", { tenant, from: period, to: period, step: "hour" }),
  ]);
  return body(context, it, timeline, [it.cacheHits, it.cachedBytes, it.passThroughBytes, it.queries.length, it.uniqueUsers], savingsTile(tenant, period, period),
    panel("Requests by hour", a(to(tenant, "statements", { day: period }), "Statements of the day"),
      traffic(context, `Hits and misses by hour, ${f.periodName(period)}`, ...fromTimeline(timeline, (at) => at.slice(11, 16), () => ""))), "by hour");
}

/**
 * @param {Context} context
 * @param {Contract.MonthlySummary | Contract.DailySummary} it
 * @param {Contract.Timeline} timeline
 * @param {[number, number | undefined, number | undefined, number, number]} sums hits, bytes from the cache and others, statements, users
 * @param {HTMLElement} saved
 * @param {HTMLElement} requests
 * @param {string} note on the hours
 */
const body = (context, it, timeline, [hits, cached, others, statements, users], saved, requests, note) => h("div", tiles([
  ["Requests", f.compact(it.totalHits)], ["Hit rate", f.ratio(hits, it.totalHits)],
  ["Response, hit", f.duration(it.cacheHitAverageResponseTime)], ["Response, miss", f.duration(it.cacheMissAverageResponseTime)],
  ["From cache", f.bytes(cached)], ["Uncached", f.bytes(others)], ["Statements", f.number(statements)], ["Users", f.number(users)],
], saved), requests, h("div.columns", hours(context, it.hourlyActivity, note), changes(context.tenant, timeline)));

/** @param {Contract.Timeline} timeline @param {(at: string) => string} name @param {(at: string) => string} deeper */
function fromTimeline(timeline, name, deeper) {
  const buckets = timeline.buckets.map((one) => bucket(name(one.at), deeper(one.at), one.hits, one.misses));
  const marks = timeline.buckets.flatMap((one, index) => one.changes.map((change) => ({
    index, text: changeText(change.kind, change.seq, change.action, change.userId) })));
  return /** @type {const} */ ([buckets, marks]);
}

/** @param {string} kind @param {number} seq @param {string} action @param {string} userId */
const changeText = (kind, seq, action, userId) =>
  `${kind === "rules" ? "Rules" : "Configuration"} #${seq}: ${action} by ${userId}`;

/** @param {Context} context @param {(Contract.HourActivity | Contract.MonthHourActivity)[]} activity @param {string} note */
function hours(context, activity, note) {
  return panel("Response times", beside(note), chart({
    label: `Response times ${note}`, short: true, onLeave: context.onLeave, labels: activity.map((one) => f.hour(one.hour)),
    series: [
      { label: "Miss", values: activity.map((one) => one.cacheMissAverageResponseTime || null), colour: "miss", kind: "line", show: f.duration },
      { label: "Hit", values: activity.map((one) => one.cacheHitAverageResponseTime || null), colour: "hit", kind: "line", show: f.duration },
    ],
  }));
}

/** @param {string} tenant @param {Contract.Timeline} timeline */
function changes(tenant, timeline) {
  const rows = timeline.buckets.flatMap((one) => one.changes).reverse();
  const markers = timeline.buckets.flatMap((one) => Object.values(one.markers)).reduce((sum, count) => sum + count, 0);
  return tablePanel("Changes", can(tenant, "cache") ? a(to(tenant, "invalidate", { show: "past" }), f.count(markers, "invalidation marker")) : null, [
      age("When", "changedAt"),
      { head: "What", cell: (row) => [badge(row.kind, row.kind === "rules" ? "info" : ""), " ",
        a(to(tenant, "history", { kind: row.kind, seq: row.seq }), `#${row.seq} ${row.action}`)], class: "nowrap" },
      { ...text("Who", "userId"), class: "clip" },
    ], rows, { limit: 8, none: "No changes of rules or configuration." });
}
