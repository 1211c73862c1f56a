// What the cache saves on the warehouse's bill: the tiles of the overview.

import { call } from "./api.js";
import { fill, h } from "./dom.js";
import * as f from "./format.js";
import { to } from "./router.js";

/** @param {Contract.Savings} savings what the bill is less: money, or time without a price */
export const saved = ({ currency, total: { saved: less } }) => (currency && less.money !== null ? f.money(less.money, currency) : f.duration(less.billedMs));

/** @param {{billedMs?: Contract.BilledRange | null, money?: Contract.MoneyRange | null}} gain how much less is billed, below 0; what is more in any case is a cost */
export const onBill = ({ billedMs, money }) => {
  const { low, high } = money ?? billedMs ?? { low: 0, high: 0 };
  const costs = Number(low) > 0;
  const shown = (costs ? [low, high] : [high, low]).map((end) => {
    const sign = costs || !Number(end) ? "" : Number(end) < 0 ? "+" : "−";
    return sign + (money ? f.money(String(end).replace("-", ""), money.currency) : f.duration(Math.abs(Number(end))));
  });
  return { costs, text: [...new Set(shown)].join(" to ").replace(` ${money?.currency} to`, " to") };
};

/** @type {(gain: Parameters<typeof onBill>[0]) => [string, string][]} a tile of what a change does to the bill, if it is known */
export const billTile = (gain) => {
  const { costs, text } = onBill(gain);
  return gain.billedMs ? [[`${costs ? "Costs" : "Saved"} on the bill`, text]] : [];
};

/** @type {(tenant: string, from: string, last: string, query: Texts) => HTMLElement[]} the page does not wait for the savings. `query` is the period in addresses */
export const savingsTiles = (tenant, from, last, query) => {
  const today = f.today();
  const [bill, time] = [h("dd", "…"), h("dd", f.NONE)];
  if (from > today) fill(bill, f.NONE);
  else {
    call("GET /tenants/{tenant}/savings", { tenant, from, to: last < today ? last : today, step: "month" }).then((savings) => {
      fill(bill, h("a", { href: to(tenant, "savings", query) }, saved(savings)), h("span.note", savings.text.bill, !savings.currency && ["; ", h("a", { href: to(tenant, "config") }, "set a price"), " to see money"]));
      bill.title = time.title = savings.text.explanation;
      fill(time, f.duration(savings.total.saved.busyMs), h("span.note", savings.text.time));
    }, () => fill(bill, f.NONE, h("span.note", "not available")));
  }
  return [h("div", h("dt", "Saved on the bill"), bill), h("div", h("dt", "Warehouse time saved"), time)];
};
