// What the cache saves on the warehouse's bill: the tile of the overview, and the sentence on the two times.

import { call } from "./api.js";
import { fill, h } from "./dom.js";
import * as f from "./format.js";
import { to } from "./router.js";

/** @param {Contract.Savings} savings what the bill is less: money, or time without a price */
export const saved = ({ currency, total: { saved: less } }) => (currency && less.money !== null ? f.money(less.money, currency) : `${f.duration(less.billedMs)} less awake`);

/** @param {{billedMs?: Contract.BilledRange | null, money?: Contract.MoneyRange | null}} gain how much less is billed: a gain is below 0 */
export const savedOnBill = ({ billedMs, money }) => billedMs && [...new Set((money ? [money.high, money.low] : [billedMs.high, billedMs.low]).map((end) => {
  const sign = Number(end) < 0 ? "+" : Number(end) ? "−" : "";
  return sign + (money ? f.money(String(end).replace("-", ""), money.currency) : f.duration(Math.abs(Number(end))));
}))].join(" to ").replace(` ${money?.currency} to`, " to");

/** @param {Contract.Savings} savings */
export function explanation({ total, pricing }) {
  const [billing, busy] = [pricing[pricing.length - 1]?.billing, `The cache spared ${f.ratio(total.saved.busyMs, total.without.busyMs)} of the warehouse time, which is how long statements run`];
  if (billing === "always-on") return `${busy}. The warehouse is always on, so that saves capacity and no money.`;
  const both = `${busy}, and ${f.ratio(total.saved.billedMs, total.without.billedMs)} of the time on the bill.`;
  return billing === "busy" ? both : `${both} A hit saves money only when the warehouse would have been asleep without it; at other times it is awake for other requests anyway.`;
}

/** @type {(tenant: string, from: string, last: string) => HTMLElement} the page does not wait for the savings */
export const savingsTile = (tenant, from, last) => {
  const today = f.today();
  const value = h("dd", f.NONE, from <= today && h("span.note", "…"));
  if (from <= today) {
    call("GET /tenants/{tenant}/savings", { tenant, from, to: last < today ? last : today, step: "month" }).then((savings) => fill(value,
      h("a", { href: to(tenant, "savings", { period: from.slice(0, 7) }) }, saved(savings)), h("span.note", `${f.duration(savings.total.saved.busyMs)} of warehouse time`, !savings.currency && ["; ", h("a", { href: to(tenant, "config") }, "no price is set")])),
    () => fill(value, f.NONE, h("span.note", "not available")));
  }
  return h("div", h("dt", "Saved on the bill"), value);
};
