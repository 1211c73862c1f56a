// What the cache saves on the bill, by hour, by day and by rule.

import { call } from "../api.js";
import { chart } from "../charts.js";
import { nothingYet } from "../firsthour.js";
import * as f from "../format.js";
import { readRules } from "../rulenames.js";
import { saved } from "../savings.js";
import { a, badge, beside, empty, fine, h, num, pageHead, panel, stepper, tablePanel, tabs, text, to } from "../ui.js";
import { shift, tiles } from "./overview.js";
import { sources } from "./reports.js";

/** @type {Show} */
export async function show({ tenant, query, onLeave }) {
  const [today, period] = [f.today(), query.get("period") ?? f.yesterday().slice(0, 7)];
  const isYear = period.length === 4;
  // A day is the last of so many.
  const days = period.length === 10 ? Number(query.get("days")) || 1 : 0;
  const [from, end] = days ? [f.addDays(period, 1 - days), period] : [`${period}${isYear ? "-01" : ""}-01`, f.addDays(`${shift(period, 1)}${isYear ? "-01" : ""}-01`, -1)];
  const at = (/** @type {string} */ value, length = days) => to(tenant, "savings", { period: value, ...(value.length === 10 && { days: String(length) }) });
  const name = days ? `${f.periodName(from)} to ${f.periodName(end)}` : f.periodName(period);
  const head = (since = from) => pageHead("Savings", `${name}${since > from ? `, with requests since ${f.periodName(since)}` : ""}. Days and hours are in UTC.`,
    tabs([.../** @type {[string, string, boolean][]} */ ([7, 28].map((it) => [at(f.yesterday(), it), `Last ${it} days`, days === it])), [at(isYear ? `${period}-${today.slice(5, 7)}` : period.slice(0, 7)), "Month", period.length === 7],
      [at(period.slice(0, 4)), "Year", isYear]], "Length of the period", "segments"),
    stepper("Period", at, shift(period, -(days || 1)), shift(period, days || 1)));
  if (from > today) return h("div", head(), empty("This period has not begun."));
  const [rules, savings] = await Promise.all([readRules(tenant), call("GET /tenants/{tenant}/savings", { tenant, from, to: end < today ? end : today, step: isYear ? "month" : "day" })]);
  const { total, currency, pricing, text: words } = savings;
  if (!total.without.busyMs) return h("div", head(), nothingYet(tenant, "first-request", `There are no requests in ${days ? "these days" : name}.`, "What the cache saves stands here, in time and money."));
  const cost = (/** @type {string | null} */ amount) => (currency && amount !== null ? f.money(amount, currency) : undefined);
  const parts = [...savings.days ?? [], ...savings.months ?? []].map((one) => ({ name: "day" in one ? f.dayShort(one.day) : f.periodName(one.month), ...one }));
  const money = num("Money", "money", (amount) => cost(amount) ?? f.NONE);
  const isAlwaysOn = pricing.at(-1)?.billing === "always-on";
  const stacked = (/** @type {string} */ label, /** @type {Child} */ note, /** @type {any[][]} */ rows) => panel(label, note, chart({ label, labels: rows.map((row) => row[0]), onLeave,
    series: [["With the cache", "miss"], ["Spared by the cache", "saved"]].map(([label, colour], at) => ({ label, colour, values: rows.map((row) => row[at + 1]), stack: "all", show: f.duration })) }));
  let since = from;
  while (savings.window.daysWithoutData.includes(since)) since = f.addDays(since, 1);
  return h("div", head(since),
    tiles([["Saved on the bill", saved(savings), words.bill], ["Warehouse time saved", f.duration(total.saved.busyMs), words.time],
      ["Billed with the cache", f.duration(total.withCache.billedMs), cost(total.withCache.money)], ["Billed without the cache", f.duration(total.without.billedMs), cost(total.without.money)]]),
    h("p", words.explanation),
    !currency && h("p.muted", a(to(tenant, "config"), "Set a price"), " to see money."),
    !isAlwaysOn && stacked("Hours awake, by hour of the day", beside(words.chart), savings.hours.map((one) => [f.hour(one.hour), one.awakeMs, one.awakeWithoutMs - one.awakeMs])),
    stacked(`${isAlwaysOn ? "Warehouse time" : "Billed"} by ${isYear ? "month" : "day"}`, isAlwaysOn && beside(words.chart),
      parts.map((one) => (isAlwaysOn ? [one.name, one.withCache.busyMs, one.saved.busyMs] : [one.name, one.withCache.billedMs, one.saved.billedMs]))),
    savings.autoSuspend.length ? tablePanel("If the warehouse suspended after another time", beside(words.suspends), [
      text("Suspends after", "autoSuspendSeconds", (time) => [f.span(time), time === pricing.at(-1)?.autoSuspendSeconds && [" ", badge("now", "info")]]), num("Billed", "billedMs", f.duration),
      money,
    ], savings.autoSuspend, { label: "Billed time by the time until the warehouse suspends" }) : null,
    tablePanel("By rule", beside(words.rules), [
      rules.column(),
      num("Hits and waits", "hits"), num("Warehouse time saved", "busyMs", f.duration),
      num("Billed time saved", "marginalMs", f.duration), { ...money, head: "Saved on the bill" },
    ], savings.rules, { label: "Savings by rule", sorted: 3 }),
    fine(words.limits),
    sources(tenant, savings.queries));
}
