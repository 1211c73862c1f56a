// What the cache saves on the warehouse's bill: the tiles of the overview.

import { call } from "./api.js";
import { fill, h } from "./dom.js";
import * as f from "./format.js";
import { to } from "./router.js";

/** @param {Contract.Savings} savings what the bill is less: money, or time without a price */
export const saved = ({ currency, total: { saved: less } }) =>
  f.saving(
    currency && less.money !== null ? f.money(less.money, currency) : f.duration(less.billedMs),
  );

/**
 * @type {(tenant: string, from: string, last: string, query: Texts) => HTMLElement[]} the page does
 *   not wait for the savings. `query` is the period in addresses
 */
export const savingsTiles = (tenant, from, last, query) => {
  const today = f.today();
  const [bill, time] = [h("dd", "…"), h("dd", f.NONE)];
  if (from > today) fill(bill, f.NONE);
  else {
    call("GET /tenants/{tenant}/savings", {
      tenant,
      from,
      to: last < today ? last : today,
      step: "month",
    }).then(
      (savings) => {
        fill(
          bill,
          h("a", { href: to(tenant, "savings", query) }, saved(savings)),
          h(
            "span.note",
            savings.text.bill,
            !savings.currency && [
              "; ",
              h("a", { href: to(tenant, "config") }, "set a price"),
              " to see money",
            ],
          ),
        );
        bill.title = time.title = savings.text.explanation;
        fill(
          time,
          f.saving(f.duration(savings.total.saved.busyMs)),
          h("span.note", savings.text.time),
        );
      },
      () => fill(bill, f.NONE, h("span.note", "not available")),
    );
  }
  return [
    h("div", h("dt", "Saved on the bill"), bill),
    h("div", h("dt", "Warehouse time saved"), time),
  ];
};
