// What an hour of the warehouse costs, as rows of fields: one for each price, the oldest first.

import { today } from "./format.js";
import { TIMES, withUnit } from "./forms.js";
import { button, field, fine, h, input, select } from "./ui.js";

/** @type {Record<Contract.Billing, string>} */
const BILLING = {
  suspending: "while it is awake",
  busy: "while it runs statements",
  "always-on": "all the time",
};

/**
 * @type {Record<string, Partial<Contract.Price>>} how warehouses are usually billed;
 *   docs/savings.md has the sources
 */
const USUAL = {
  snowflake: { billing: "suspending", autoSuspendSeconds: 600, minimumSeconds: 60 },
  databricks: { billing: "suspending", autoSuspendSeconds: 600, minimumSeconds: 0 },
  postgresql: { billing: "always-on" },
};

/**
 * @param {Contract.Price[]} prices
 * @param {() => string} kind of the warehouse
 * @param {{disabled: boolean}} off
 */
export function priceFields(prices, kind, off) {
  /** @type {{element: HTMLElement, read: () => Contract.Price}[]} */
  let rows = [];
  const list = h("div");
  const add = (/** @type {Partial<Contract.Price>} */ price) => {
    const from = input("from", price.from ?? today(), { ...off, type: "date", required: true });
    const hour = input("perHour", price.perHour, {
      ...off,
      inputmode: "decimal",
      placeholder: "3.00",
      required: true,
    });
    const host = input("host", price.host, { ...off, maxlength: 253, placeholder: "every" });
    const currency = input("currency", price.currency ?? rows[0]?.read().currency ?? "USD", {
      ...off,
      maxlength: 3,
    });
    const billing = select("billing", BILLING, price.billing ?? "suspending", off);
    const [suspend, least] = [
      withUnit(
        "Suspends after",
        "autoSuspendSeconds",
        price.autoSuspendSeconds,
        TIMES,
        "Without a statement. 5 min if empty.",
        off,
      ),
      withUnit(
        "Each start bills at least",
        "minimumSeconds",
        price.minimumSeconds,
        TIMES,
        "60 s if empty.",
        off,
      ),
    ];
    const show = () =>
      [suspend, least].forEach((one) => {
        one.field.hidden = billing.value !== "suspending";
      });
    billing.addEventListener("change", show);
    show();
    const row = {
      element: h(
        "div.form",
        field("From", from),
        field("An hour costs", hour),
        field("Currency", currency),
        field("Of the host", host, "As the log has it. Empty: every other."),
        field("Billed", billing),
        suspend.field,
        least.field,
        !off.disabled &&
          h(
            "div",
            button(
              "Remove this price",
              () => {
                rows = rows.filter((one) => one !== row);
                row.element.remove();
              },
              "quiet small",
            ),
          ),
      ),
      read: () =>
        /** @type {Contract.Price} */ ({
          from: from.value,
          host: host.value.trim() || undefined,
          currency: currency.value.trim().toUpperCase(),
          perHour: hour.value.trim(),
          billing: billing.value,
          ...(billing.value === "suspending" && {
            autoSuspendSeconds: suspend.value(),
            minimumSeconds: least.value(),
          }),
        }),
    };
    rows.push(row);
    list.append(row.element);
  };
  prices.forEach(add);
  return {
    read: () => rows.map((row) => row.read()).sort((x, y) => x.from.localeCompare(y.from)),
    element: h(
      "div",
      list,
      h(
        "div.pad",
        fine(
          "The contract with the provider says them. A new price counts from its first day (UTC) on.",
        ),
        !off.disabled && button("Add a price", () => add(USUAL[kind()] ?? USUAL.snowflake)),
      ),
    ),
  };
}
