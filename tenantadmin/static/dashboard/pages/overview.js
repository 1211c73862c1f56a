// What the cache did in a year, a month or a day, with the changes that fell in it.

import { call, hasStatus } from "../api.js";
import { chart, loadCharts } from "../charts.js";
import { emptyDay, readActivity } from "../days.js";
import { readSetup } from "../firsthour.js";
import { later } from "../histogram.js";
import * as f from "../format.js";
import { can, listed, tenants } from "../people.js";
import { daysOf, inAddress, nameOf, noRequestsIn, periodHead } from "../periods.js";
import { readRules } from "../rulenames.js";
import { savingsTiles } from "../savings.js";
import { staff } from "../staff.js";
import {
  a,
  age,
  badge,
  beside,
  empty,
  fill,
  fine,
  go,
  h,
  num,
  panel,
  revisionLink,
  showIn,
  table,
  tablePanel,
  tiles,
  to,
} from "../ui.js";
import { verdict } from "../verdict.js";
import { verification } from "../verify.js";

/**
 * @typedef {{name: string, href: string, hits: number, misses: number, notCached: number}} Bucket
 *   `href` leads to what was then
 */

/** @type {Show} */
export async function show(context) {
  const { tenant, query } = context;
  const asked = query.get("period");
  // It comes beside the data; a chart says if it does not.
  loadCharts().catch(() => {});
  const given = Number(query.get("days")) || 1;
  const activity = await readActivity(tenant, ...(asked ? daysOf(asked, given) : []));
  const { to: until, lastDay } = activity;
  const [period, days] = asked ? [asked, given] : [until, 28];
  const at = (/** @type {Texts} */ chosen) => to(tenant, "overview", chosen);
  const last = lastDay ?? f.yesterday();
  const newest = activity.days.at(-1)?.day ?? (period.length === 10 ? period : last);
  const top = () => [
    periodHead(
      heading(tenant),
      `${nameOf(period, days)}. Days and hours are in UTC, times in your zone.`,
      { period, days, newest, last, at },
    ),
    until >= last && verdict(tenant),
  ];
  if (activity.days.length) {
    try {
      const node = await (period.length === 4 ? year : inDays)(context, period, activity);
      return h(
        "div",
        top(),
        node,
        byRule(tenant, activity),
        days === 1 && verification(tenant, period),
      );
    } catch (error) {
      if (!hasStatus(error, 404)) throw error;
      return h(
        "div",
        top(),
        empty(
          "This period is being summarised.",
          fine("It takes a few minutes after the log has arrived. Reload the page then."),
        ),
      );
    }
  }
  if (asked || (await readSetup(tenant, context.signal)).ready)
    return h(
      "div",
      top(),
      emptyDay(tenant, noRequestsIn(period, days), lastDay, (day) =>
        at(inAddress(day.slice(0, period.length), days)),
      ),
    );
  if (!context.signal.aborted) location.replace(to(tenant, "setup"));
  return h("div");
}

/** @param {string} tenant its name comes late: the page does not wait for it */
function heading(tenant) {
  const title = h("h1", "Overview");
  const nameIt = () => {
    const name = staff()?.name ?? listed().find(({ id }) => id === tenant)?.name;
    if (name) fill(title, `Overview of ${name}`);
  };
  nameIt();
  // The title is whole without it.
  tenants().then(nameIt, () => {});
  return title;
}

/**
 * @param {Context} context
 * @param {Contract.Activity} activity
 * @param {[string, string, string?][]} more
 */
function figures({ tenant, query }, { from, to: last, total, change, before }, more) {
  /** @type {Record<string, Value>} */
  const sums = { ...total, requests: total.hits + total.storedMisses + total.notCached };
  /** @type {Record<string, any> | null | undefined} */
  const changes = change;
  /**
   * @type
   *   {(name: string, key: string, show?: (value: Value) => string, showChange?: (value: any) =>
   *   string, of?: string) => [string, string, string]}
   *   by default, a change is of the mean day
   */
  const tile = (name, key, show = f.number, showChange = f.change, of = " a day") => [
    name,
    show(sums[key]),
    changes ? showChange(changes[key]) + of : "",
  ];
  return h(
    "div",
    tiles(
      [
        tile("Requests", "requests"),
        tile("Hit rate", "hitRate", f.percent, f.points, ""),
        tile("Hits", "hits"),
        tile("Misses", "storedMisses"),
        tile("Not cached (bypassed, passed through)", "notCached"),
        tile("Warehouse time spent", "warehouseMs", f.duration, f.durationChange),
        tile("Response from the cache", "hitResponseMs", f.duration, f.durationChange, ""),
        tile("Response from the warehouse", "missResponseMs", f.duration, f.durationChange, ""),
        tile("Data from the cache", "cachedBytes", f.bytes, (value) =>
          f.difference(value, f.bytes),
        ),
        ...more,
      ],
      savingsTiles(
        tenant,
        from,
        last,
        query.has("period") ? Object.fromEntries(query) : { period: last, days: "28" },
      ),
    ),
    fine(before.text),
  );
}

/**
 * @param {Context} context
 * @param {string} label
 * @param {Bucket[]} buckets
 * @param {Mark[]} marks
 */
function traffic(context, label, buckets, marks) {
  const deeper = (/** @type {number} */ index) => {
    if (buckets[index].href) go(buckets[index].href);
  };
  return chart({
    label,
    labels: buckets.map((one) => one.name),
    marks,
    signal: context.signal,
    press: deeper,
    series: [
      .../** @type {const} */ ([
        ["Hits", "hits", "hit"],
        ["Misses", "misses", "miss"],
        ["Not cached", "notCached", "not-cached"],
      ]).map(([label, key, colour]) => ({
        label,
        colour,
        values: buckets.map((one) => one[key]),
        stack: "requests",
        show: f.number,
      })),
      {
        label: "Hit rate",
        values: buckets.map(
          ({ hits, misses, notCached }) => hits / (hits + misses + notCached || NaN),
        ),
        colour: "rate",
        kind: "line",
        axis: "right",
        show: f.percent,
      },
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
  const buckets = activity.days.map(({ day: name, hits, storedMisses: misses, notCached }) => ({
    name: f.dayShort(name),
    href: to(tenant, "overview", { period: name }),
    hits,
    misses,
    notCached,
  }));
  const marks = history.changes.flatMap((change) => {
    const index = activity.days.findIndex(({ day }) => day === change.changedAt.slice(0, 10));
    return index < 0 ? [] : [{ index, text: changeText(change) }];
  });
  return h(
    "div",
    figures(context, activity, [
      ["Statements cached", f.number(summary.totalQueries), `${f.bytes(summary.cacheSize)} stored`],
      ["Users", f.number(summary.totalUsers)],
    ]),
    panel(
      "Requests by day",
      beside("Press a bar for its day"),
      traffic(context, `Requests by day in ${period}`, buckets, marks),
    ),
  );
}

/**
 * @param {Context} context
 * @param {string} period
 * @param {Contract.Activity} activity a month, a day, or the days until one
 */
async function inDays(context, period, activity) {
  const { tenant } = context;
  const { from, to: last } = activity;
  const [year, month, day] = period.split("-");
  const isDay = from === last;
  const seesStatements = can(tenant, "statements");
  const [it, timeline] = await Promise.all([
    isDay && seesStatements
      ? call("GET /tenants/{tenant}/summaries/{year}/{month}/{day}", { tenant, year, month, day })
      : day
        ? null
        : call("GET /tenants/{tenant}/summaries/{year}/{month}", { tenant, year, month }),
    call("GET /tenants/{tenant}/timeline", {
      tenant,
      from,
      to: last,
      step: isDay ? "hour" : "day",
    }),
  ]);
  const [statements, users] = !it
    ? []
    : "queries" in it
      ? [it.queries.length, it.uniqueUsers]
      : [it.totalQueries, it.totalUsers];
  const label = `Requests by ${isDay ? "hour" : "day"}`;
  const changed = changes(tenant, timeline);
  return h(
    "div",
    figures(
      context,
      activity,
      it
        ? [
            ["Statements", f.number(statements)],
            ["Users", f.number(users)],
          ]
        : [],
    ),
    panel(
      label,
      isDay && [
        can(tenant, "member") && beside("Press a bar for its requests"),
        seesStatements && a(to(tenant, "statements", { day: period }), "Statements"),
        can(tenant, "member") && a(to(tenant, "traffic", { from, to: last }), "Requests"),
        a(to(tenant, "digest", { day: period }), "Digest"),
      ],
      traffic(
        context,
        `${label}, ${day && !isDay ? "until " : ""}${f.periodName(period)}`,
        ...fromTimeline(timeline, isDay ? (at) => at.slice(11, 16) : f.dayShort, (at) =>
          isDay
            ? can(tenant, "member")
              ? to(tenant, "traffic", { from: at, to: later(at, 3_600_000) })
              : ""
            : to(tenant, "overview", { period: at.slice(0, 10) }),
        ),
      ),
    ),
    it
      ? h(
          "div.columns",
          hours(
            context,
            it.hourlyActivity,
            isDay ? "by hour" : "by hour of day, mean of the month",
          ),
          changed,
        )
      : changed,
  );
}

/**
 * @param {Contract.Timeline} timeline
 * @param {(at: string) => string} name
 * @param {(at: string) => string} deeper
 */
function fromTimeline(timeline, name, deeper) {
  const buckets = timeline.buckets.map(({ at, hits, misses, notCached }) => ({
    name: name(at),
    href: hits + misses ? deeper(at) : "",
    hits,
    misses: misses - notCached,
    notCached,
  }));
  const marks = timeline.buckets.flatMap((one, index) =>
    one.changes.map((change) => ({ index, text: changeText(change) })),
  );
  return /** @type {const} */ ([buckets, marks]);
}

/** @param {{kind: string, seq: number, text?: string}} change */
const changeText = ({ kind, seq, text: did }) =>
  `${kind === "rules" ? "Rules" : "Configuration"}, revision ${seq}: ${did}`;

/**
 * @param {Context} context
 * @param {(Contract.HourActivity | Contract.MonthHourActivity)[]} activity
 * @param {string} note
 */
function hours(context, activity, note) {
  return panel(
    "Response times",
    beside(note),
    chart({
      label: `Response times ${note}`,
      short: true,
      signal: context.signal,
      labels: activity.map((one) => f.hour(one.hour)),
      series: /** @type {const} */ ([
        ["From the warehouse", "cacheMissAverageResponseTime", "miss"],
        ["From the cache", "cacheHitAverageResponseTime", "hit"],
      ]).map(([label, key, colour]) => ({
        label,
        colour,
        values: activity.map((one) => one[key] || null),
        kind: "line",
        show: f.duration,
      })),
    }),
  );
}

/**
 * What each rule did, with the change of its mean day against the period before. It is read when it
 * is opened.
 * @param {string} tenant
 * @param {Contract.Activity} activity
 */
function byRule(tenant, { from, to: last, total, before, change }) {
  const box = h("div");
  const rulesFrom = (/** @type {string} */ from, /** @type {string} */ to) =>
    call("GET /tenants/{tenant}/activity/rules", { tenant, from, to });
  const read = async () => {
    const [rules, own, earlier] = await Promise.all([
      readRules(tenant),
      rulesFrom(from, last),
      change && rulesFrom(before.from, before.to),
    ]);
    const past = new Map(earlier?.rules.map((rule) => [rule.ruleId, rule]));
    /** @type {(head: string, differ: (row: any, was: any) => string) => Column} */
    const changed = (head, differ) => ({
      head,
      number: true,
      cell: (row) => {
        const was = past.get(row.ruleId);
        return was ? differ(row, was) : "new";
      },
    });
    return table(
      [
        rules.column("Rule", "ruleId", Object.fromEntries(own.rules.map(nameOfRule))),
        num("Requests", "totalExecutions"),
        earlier !== null &&
          changed("Change a day", (row, was) =>
            f.change(row.totalExecutions / total.days - was.totalExecutions / before.days),
          ),
        num("Hits", "cacheHits"),
        num("Misses", "misses"),
        num("Not cached", "notCached"),
        num("Log entries of every status", "requests"),
        num("Hit rate", "hitRate", f.percent),
        earlier !== null && changed("Change", (row, was) => f.points(row.hitRate - was.hitRate)),
      ],
      own.rules.map((rule) => ({ ...rule, misses: rule.cacheMisses - (rule.notCached ?? 0) })),
      { label: "By rule", sorted: 1, none: "No rule decided a request of these days." },
    );
  };
  /** @type {HTMLDetailsElement} */
  const details = h(
    "details.panel",
    { ontoggle: () => details.open && !box.hasChildNodes() && showIn(read, box) },
    h("summary.panel-head", "By rule"),
    box,
  );
  return details;
}

/** @param {Contract.RuleRecord} rule @returns {[string, string]} its id, and the name that it had */
const nameOfRule = ({ ruleId, ruleName }) => [ruleId, ruleName ?? ruleId];

/** @param {string} tenant @param {Contract.Timeline} timeline */
function changes(tenant, timeline) {
  const rows = timeline.buckets.flatMap((one) => one.changes).reverse();
  const markers = timeline.buckets
    .flatMap((one) => Object.values(one.markers))
    .reduce((sum, count) => sum + count, 0);
  return tablePanel(
    "Changes",
    can(tenant, "cache") &&
      a(
        to(tenant, "invalidate", { show: "past" }),
        `${f.count(markers, "time")} results were marked as stale`,
      ),
    [
      age("When", "changedAt"),
      {
        head: "What",
        class: "value",
        cell: (row) => [
          h(
            "div.row",
            badge(row.kind, row.kind === "rules" ? "info" : ""),
            revisionLink(tenant, row.seq, `Revision ${row.seq}`, row.kind),
          ),
          h("div.does", row.text),
          fine(row.userId),
        ],
      },
    ],
    rows,
    { limit: 8, none: "No changes of rules or configuration." },
  );
}
