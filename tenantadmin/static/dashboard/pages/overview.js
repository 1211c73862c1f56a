// What the cache did in a year, a month or a day, with the changes that fell in it.

import { call, hasStatus } from "../api.js";
import { chart, loadCharts } from "../charts.js";
import { emptyDay, readActivity } from "../days.js";
import { readSetup } from "../firsthour.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { savingsTiles } from "../savings.js";
import { a, age, badge, beside, empty, fine, go, h, pageHead, panel, stepper, tablePanel, tabs, to } from "../ui.js";
import { verdict } from "../verdict.js";

/** @typedef {{name: string, day: string, hits: number, misses: number, notCached: number}} Bucket */

/** @type {Show} */
export async function show(context) {
  const { tenant, query } = context;
  const asked = query.get("period");
  // It comes beside the data; a chart says if it does not.
  loadCharts().catch(() => {});
  // A day may be the last of so many.
  const given = Number(query.get("days")) || 1;
  const activity = await readActivity(tenant, ...(!asked ? [] : asked.length === 10 ? [f.addDays(asked, 1 - given), asked] : [`${asked}-01-01`.slice(0, 10), f.addDays(`${shift(asked, 1)}-01-01`.slice(0, 10), -1)]));
  const { from, to: last, lastDay } = activity;
  const [period, days] = asked ? [asked, given] : [last, 28];
  const at = (/** @type {string} */ value, length = days) => to(tenant, "overview", { period: value, ...(value.length === 10 && length > 1 && { days: String(length) }) });
  const title = days > 1 ? `${f.periodName(from)} to ${f.periodName(last)}` : f.periodName(period);
  const top = () => [head(period, days, title, activity, at), last >= (lastDay ?? f.yesterday()) && verdict(tenant)];
  if (activity.days.length) {
    try {
      const node = await (days > 1 ? several : period.length === 4 ? year : period.length === 7 ? month : day)(context, period, activity);
      return h("div", top(), node);
    } catch (error) {
      if (!hasStatus(error, 404)) throw error;
      return h("div", top(), empty("This period is being summarised.", h("p.muted", "It takes a few minutes after the log has arrived. Reload the page then.")));
    }
  }
  if (asked || (await readSetup(tenant, context.signal)).ready) return h("div", top(), emptyDay(tenant, `There are no requests ${days > 1 ? "in these days" : `${period.length > 7 ? "on" : "in"} ${title}`}.`, lastDay, (last) => at(last.slice(0, period.length))));
  location.replace(to(tenant, "setup"));
  return h("div");
}

/** @param {string} period @param {number} length days @param {string} title @param {Contract.Activity} activity @param {(period: string, length?: number) => string} at */
function head(period, length, title, { days, lastDay }, at) {
  const last = lastDay ?? f.yesterday();
  const newest = days.at(-1)?.day ?? (period.length === 10 ? period : last);
  const levels = /** @type {const} */ ([["7 days", last, 7], ["28 days", last, 28], ["Year", period.slice(0, 4), 1], ["Month", (period.length === 4 ? newest : period).slice(0, 7), 1], ["Day", newest, 1]]);
  return pageHead(title, "Days and hours are in UTC.",
    tabs(levels.map(([text, value, many]) => [at(value, many), text, value.length === period.length && many === length]), "Length of the period", "segments"),
    stepper("Period", at, shift(period, -length), shift(period, length), last));
}

/** @param {string} period @param {number} by */
export function shift(period, by) {
  if (period.length === 10) return f.addDays(period, by);
  if (period.length === 4) return String(Number(period) + by);
  const date = new Date(`${period}-01T00:00Z`);
  date.setUTCMonth(date.getUTCMonth() + by);
  return f.isoDay(date).slice(0, 7);
}

/** @param {[string, string, string?][]} entries @param {HTMLElement[]} [first] */
export const tiles = (entries, first) =>
  h("dl.tiles", first, entries.map(([name, value, note]) =>
    h("div", h("dt", name), h("dd", value, note && h("span.note", note)))));

/** @param {Context} context @param {Contract.Activity} activity @param {[string, string, string?][]} more */
function figures({ tenant, query }, { from, to: last, total, change, before }, more) {
  /** @type {(value: Value, show: (value: Value) => string) => string} of the mean day */
  const daily = (value, show) => (change ? `${show(value)} a day` : "");
  const requests = total.hits + total.storedMisses + total.notCached;
  return h("div", tiles([
    ["Requests", f.number(requests), daily(change?.requests, f.change)], ["Hit rate", f.percent(total.hitRate), change ? f.points(change.hitRate) : ""],
    ["Hits", f.number(total.hits), daily(change?.hits, f.change)], ["Misses", f.number(total.storedMisses), daily(change?.storedMisses, f.change)],
    ["Not cached (bypassed, passed through)", f.number(total.notCached), daily(change?.notCached, f.change)],
    ["Warehouse time spent", f.duration(total.warehouseMs), daily(change?.warehouseMs, f.durationChange)],
    ["Response from the cache", f.duration(total.hitResponseMs), change ? f.durationChange(change.hitResponseMs) : ""],
    ["Response from the warehouse", f.duration(total.missResponseMs), change ? f.durationChange(change.missResponseMs) : ""],
    ["Data from the cache", f.bytes(total.cachedBytes), daily(change?.cachedBytes, (value) => f.difference(value, f.bytes))], ...more,
  ], savingsTiles(tenant, from, last, query.has("period") ? Object.fromEntries(query) : { period: last, days: "28" })), fine(before.text));
}

/** @param {Context} context @param {string} label @param {Bucket[]} buckets @param {Mark[]} marks */
function traffic(context, label, buckets, marks) {
  const deeper = (/** @type {number} */ index) => {
    if (buckets[index].day) go(to(context.tenant, "overview", { period: buckets[index].day }));
  };
  return chart({
    label, labels: buckets.map((one) => one.name), marks, onLeave: context.onLeave, press: deeper,
    series: [
      { label: "Hits", values: buckets.map((one) => one.hits), colour: "hit", stack: "requests", show: f.number },
      { label: "Misses", values: buckets.map((one) => one.misses), colour: "miss", stack: "requests", show: f.number },
      { label: "Not cached", values: buckets.map((one) => one.notCached), colour: "not-cached", stack: "requests", show: f.number },
      { label: "Hit rate", values: buckets.map(({ hits, misses, notCached }) => hits / (hits + misses + notCached || NaN)), colour: "rate", kind: "line", axis: "right", show: f.percent },
    ],
  });
}

/** @param {Context} context @param {string} period @param {Contract.Activity} activity */
async function year(context, period, activity) {
  const { tenant } = context;
  const [summary, history] = await Promise.all([
    call("GET /tenants/{tenant}/summaries/{year}", { tenant, year: period }),
    call("GET /config/tenants/{tenant}/rules/history", { tenant, limit: 200 }),
  ]);
  const buckets = activity.days.map(({ day: name, hits, storedMisses: misses, notCached }) => ({ name: f.dayShort(name), day: name, hits, misses, notCached }));
  const marks = history.changes.flatMap((change) => {
    const index = buckets.findIndex((one) => one.day === change.changedAt.slice(0, 10));
    return index < 0 ? [] : [{ index, text: changeText(change) }];
  });
  return h("div",
    figures(context, activity, [["Statements cached", f.number(summary.totalQueries), `${f.bytes(summary.cacheSize)} stored`], ["Users", f.number(summary.totalUsers)]]),
    panel("Requests by day", null, traffic(context, `Requests by day in ${period}`, buckets, marks)));
}

/** @param {string} tenant @param {Contract.Activity} activity */
const readTimeline = (tenant, { from, to: last }) => call("GET /tenants/{tenant}/timeline", { tenant, from, to: last, step: "day" });

/** @param {Context} context @param {Contract.Timeline} timeline @param {string} label */
const byDay = (context, timeline, label) =>
  panel("Requests by day", null, traffic(context, `Requests by day, ${label}`, ...fromTimeline(timeline, f.dayShort, (at) => at.slice(0, 10))));

/** @param {Context} context @param {string} period @param {Contract.Activity} activity */
async function several(context, period, activity) {
  const timeline = await readTimeline(context.tenant, activity);
  return h("div", figures(context, activity, []), byDay(context, timeline, `days until ${period}`), changes(context.tenant, timeline));
}

/** @param {Context} context @param {string} period @param {Contract.Activity} activity */
async function month(context, period, activity) {
  const { tenant } = context;
  const [thisYear, thisMonth] = period.split("-");
  const [it, timeline] = await Promise.all([
    call("GET /tenants/{tenant}/summaries/{year}/{month}", { tenant, year: thisYear, month: thisMonth }),
    readTimeline(tenant, activity),
  ]);
  return body(context, it, timeline, figures(context, activity, [["Statements", f.number(it.totalQueries)], ["Users", f.number(it.totalUsers)]]),
    byDay(context, timeline, f.periodName(period)), "by hour of day, mean of the month");
}

/** @param {Context} context @param {string} period @param {Contract.Activity} activity */
async function day(context, period, activity) {
  const { tenant } = context;
  const [thisYear, thisMonth, thisDay] = period.split("-");
  const [it, timeline] = await Promise.all([
    call("GET /tenants/{tenant}/summaries/{year}/{month}/{day}", { tenant, year: thisYear, month: thisMonth, day: thisDay }),
    call("GET /tenants/{tenant}/timeline", { tenant, from: period, to: period, step: "hour" }),
  ]);
  return body(context, it, timeline, figures(context, activity, [["Statements", f.number(it.queries.length)], ["Users", f.number(it.uniqueUsers)]]),
    panel("Requests by hour", [a(to(tenant, "statements", { day: period }), "Statements"), a(to(tenant, "traffic", { from: period, to: period }), "Requests"), a(to(tenant, "digest", { day: period }), "Digest")],
      traffic(context, `Requests by hour, ${f.periodName(period)}`, ...fromTimeline(timeline, (at) => at.slice(11, 16), () => ""))), "by hour");
}

/**
 * @param {Context} context
 * @param {Contract.MonthlySummary | Contract.DailySummary} it
 * @param {Contract.Timeline} timeline
 * @param {HTMLElement} sums
 * @param {HTMLElement} requests
 * @param {string} note on the hours
 */
const body = (context, it, timeline, sums, requests, note) =>
  h("div", sums, requests, h("div.columns", hours(context, it.hourlyActivity, note), changes(context.tenant, timeline)));

/** @param {Contract.Timeline} timeline @param {(at: string) => string} name @param {(at: string) => string} deeper */
function fromTimeline(timeline, name, deeper) {
  const buckets = timeline.buckets.map(({ at, hits, misses, notCached }) => ({ name: name(at), day: hits + misses ? deeper(at) : "", hits, misses: misses - notCached, notCached }));
  const marks = timeline.buckets.flatMap((one, index) => one.changes.map((change) => ({ index, text: changeText(change) })));
  return /** @type {const} */ ([buckets, marks]);
}

/** @param {{kind: string, seq: number, text?: string}} change */
const changeText = ({ kind, seq, text: did }) => `${kind === "rules" ? "Rules" : "Configuration"}, revision ${seq}: ${did}`;

/** @param {Context} context @param {(Contract.HourActivity | Contract.MonthHourActivity)[]} activity @param {string} note */
function hours(context, activity, note) {
  return panel("Response times", beside(note), chart({
    label: `Response times ${note}`, short: true, onLeave: context.onLeave, labels: activity.map((one) => f.hour(one.hour)),
    series: [{ label: "From the warehouse", values: activity.map((one) => one.cacheMissAverageResponseTime || null), colour: "miss", kind: "line", show: f.duration },
    { label: "From the cache", values: activity.map((one) => one.cacheHitAverageResponseTime || null), colour: "hit", kind: "line", show: f.duration }],
  }));
}

/** @param {string} tenant @param {Contract.Timeline} timeline */
function changes(tenant, timeline) {
  const rows = timeline.buckets.flatMap((one) => one.changes).reverse();
  const markers = timeline.buckets.flatMap((one) => Object.values(one.markers)).reduce((sum, count) => sum + count, 0);
  return tablePanel("Changes", can(tenant, "cache") && a(to(tenant, "invalidate", { show: "past" }), `${f.count(markers, "time")} results were marked as stale`), [
      age("When", "changedAt"),
      { head: "What", class: "value", cell: (row) => [h("div.row", badge(row.kind, row.kind === "rules" ? "info" : ""),
        a(to(tenant, "history", { kind: row.kind, seq: row.seq }), `Revision ${row.seq}`)), h("div.does", row.text), fine(row.userId)] },
    ], rows, { limit: 8, none: "No changes of rules or configuration." });
}
