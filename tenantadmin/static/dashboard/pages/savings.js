// What the cache saves on the bill, by hour, by day and by rule.

import { call } from "../api.js";
import { callers } from "../callers.js";
import { chart } from "../charts.js";
import { readActivity } from "../days.js";
import { nothingYet } from "../firsthour.js";
import * as f from "../format.js";
import { daysOf, nameOf, noRequestsIn, periodHead } from "../periods.js";
import { readRules } from "../rulenames.js";
import { saved } from "../savings.js";
import {
  a,
  badge,
  beside,
  empty,
  fine,
  h,
  num,
  panel,
  tablePanel,
  text,
  tiles,
  to,
} from "../ui.js";
import { sources } from "./reports.js";

/** @param {number} ms */
const spared = (ms) => f.saving(f.duration(ms));

/** @type {Show} */
export async function show({ tenant, query, signal }) {
  const [today, asked] = [f.today(), query.get("period")];
  const last = (await readActivity(tenant)).lastDay ?? f.yesterday();
  const [period, days] = asked ? [asked, Number(query.get("days")) || 1] : [last, 28];
  const [from, end] = daysOf(period, days);
  const isYear = period.length === 4;
  const name = nameOf(period, days);
  const head = (since = from) =>
    periodHead(
      "Savings",
      `${name}${since > from ? `, with requests since ${f.periodName(since)}` : ""}. Days and hours are in UTC.`,
      {
        period,
        days,
        newest: period.length === 10 ? period : last,
        last,
        at: (chosen) => to(tenant, "savings", chosen),
      },
    );
  if (from > today) return h("div", head(), empty("This period has not begun."));
  const [rules, { recommendations }, savings] = await Promise.all([
    readRules(tenant),
    call("GET /tenants/{tenant}/recommendations", { tenant, state: "accepted" }),
    call("GET /tenants/{tenant}/savings", {
      tenant,
      from,
      to: end < today ? end : today,
      step: isYear ? "month" : "day",
    }),
  ]);
  const { total, currency, pricing, text: words } = savings;
  if (!total.without.busyMs)
    return h(
      "div",
      head(),
      nothingYet(
        tenant,
        "first-request",
        noRequestsIn(period, days),
        "What the cache saves stands here, in time and money.",
      ),
    );
  const cost = (/** @type {string | null} */ amount) =>
    currency && amount !== null ? f.money(amount, currency) : undefined;
  const bill = (/** @type {"withCache" | "without"} */ scope) => {
    const [own, month] = [total[scope], savings.perMonth[scope]];
    const monthly = cost(month.money) ?? f.duration(month.billedMs);
    return [cost(own.money), `about ${monthly} a month`].filter(Boolean).join("; ");
  };
  const parts = [...(savings.days ?? []), ...(savings.months ?? [])].map((one) => ({
    name: "day" in one ? f.dayShort(one.day) : f.periodName(one.month),
    ...one,
  }));
  const accepted = recommendations.map(({ title, decidedAt }) => ({
    index: parts.findIndex((one) =>
      decidedAt?.startsWith("day" in one ? one.day : "month" in one ? one.month : " "),
    ),
    text: `Accepted: ${title}`,
  }));
  const money = num("Money", "money", (amount) => cost(amount) ?? f.NONE);
  const inForce = pricing.filter(
    ({ host }, at) => !pricing.slice(at + 1).some((later) => later.host === host),
  );
  const isAlwaysOn = inForce.length > 0 && inForce.every(({ billing }) => billing === "always-on");
  const stacked = (
    /** @type {string} */ label,
    /** @type {Child} */ note,
    /** @type {any[][]} */ rows,
  ) =>
    panel(
      label,
      note,
      chart({
        label,
        labels: rows.map((row) => row[0]),
        short: true,
        signal,
        series: [
          ["With the cache", "miss"],
          ["Spared by the cache", "saved"],
        ].map(([label, colour], at) => ({
          label,
          colour,
          values: rows.map((row) => row[at + 1]),
          stack: "all",
          show: f.duration,
        })),
      }),
    );
  let since = from;
  while (savings.window.daysWithoutData.includes(since)) since = f.addDays(since, 1);
  return h(
    "div",
    head(since),
    tiles([
      ["Saved on the bill", saved(savings), words.bill],
      ["Warehouse time saved", spared(total.saved.busyMs), words.time],
      ["Billed with the cache", f.duration(total.withCache.billedMs), bill("withCache")],
      ["Billed without the cache", f.duration(total.without.billedMs), bill("without")],
    ]),
    h("p", words.headline && [h("strong", words.headline), " "], words.explanation),
    !currency && h("p.muted", a(to(tenant, "config"), "Set a price"), " to see money."),
    savedAlone(
      savings,
      parts,
      accepted.filter(({ index }) => index >= 0),
      signal,
    ),
    !isAlwaysOn &&
      stacked(
        "Hours awake, by hour of the day",
        beside(words.chart),
        savings.hours.map((one) => [
          f.hour(one.hour),
          one.awakeMs,
          one.awakeWithoutMs - one.awakeMs,
        ]),
      ),
    stacked(
      `${isAlwaysOn ? "Warehouse time" : "Billed"} by ${isYear ? "month" : "day"}`,
      isAlwaysOn && beside(words.chart),
      parts.map((one) =>
        isAlwaysOn
          ? [one.name, one.withCache.busyMs, one.saved.busyMs]
          : [one.name, one.withCache.billedMs, one.saved.billedMs],
      ),
    ),
    savings.autoSuspend.length
      ? tablePanel(
          "If the warehouse suspended after another time",
          beside(words.suspends),
          [
            text("Suspends after", "autoSuspendSeconds", (time) => [
              f.span(time),
              time === inForce.at(-1)?.autoSuspendSeconds && [" ", badge("now", "info")],
            ]),
            num("Billed", "billedMs", f.duration),
            money,
          ],
          savings.autoSuspend,
          { label: "Billed time by the time until the warehouse suspends" },
        )
      : null,
    tablePanel(
      "By rule",
      beside(words.rules),
      [
        rules.column(),
        num("Hits and waits", "hits"),
        num("Warehouse time saved", "busyMs", spared),
        num("Billed time saved", "marginalMs", spared),
        num("Saved on the bill", "money", (amount) => f.saving(cost(amount) ?? f.NONE)),
      ],
      savings.rules,
      { label: "Savings by rule", sorted: 3 },
    ),
    !isYear && callers(tenant, from, end < today ? end : today),
    fine(words.limits),
    sources(tenant, savings.queries),
  );
}

/**
 * @param {Contract.Savings} savings
 * @param {{name: string, saved: Contract.SavingsFigures}[]} parts
 * @param {Mark[]} marks
 * @param {AbortSignal} signal what was saved of each day or month, and of all up to it
 */
function savedAlone({ currency }, parts, marks, signal) {
  const isMoney = currency && parts.every(({ saved: { money } }) => money !== null);
  const values = parts.map(({ saved: less }) => (isMoney ? Number(less.money) : less.billedMs));
  let sum = 0;
  const show = (/** @type {number | null} */ value) =>
    value === null
      ? f.NONE
      : currency && isMoney
        ? f.money(value.toFixed(2), currency)
        : f.duration(value);
  const label = isMoney ? "Saved on the bill" : "Billed time saved";
  return panel(
    label,
    beside("Each, and all together up to it"),
    chart({
      label,
      labels: parts.map(({ name }) => name),
      marks,
      signal,
      series: [
        { label: "Saved", colour: "saved", values, show },
        {
          label: "Together (right)",
          colour: "hit",
          kind: "line",
          axis: "right",
          values: values.map((value) => (sum += value)),
          show,
        },
      ],
    }),
  );
}
