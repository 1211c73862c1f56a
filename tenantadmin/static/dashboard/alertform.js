// The form of an alert: what is watched, from which number on, who hears, and a test of that.

import { call } from "./api.js";
import { count, duration, money, number, percent } from "./format.js";
import { badge, button, checkbox, field, fine, h, input, select } from "./ui.js";

/** @typedef {Contract.Alert} Alert */
/** @typedef {Contract.AlertKindDescription} Kind */
/** @typedef {{name: string, kind: Contract.AlertKind}} Preset */

/** @type {Record<Contract.AlertChannelType, string>} */
const CHANNELS = {
  email: "mail to a member",
  webhook: "signed webhook",
  slack: "Slack",
  teams: "Microsoft Teams",
  pagerduty: "PagerDuty",
};
/** @type {Texts} what is asked for, by the type of a channel */
const TARGETS = { email: "name@example.com", pagerduty: "Integration key (32 characters)" };
/**
 * How to show units that are more than what is counted.
 * @type {{[unit in Contract.AlertUnit]?: (value: number, currency: string | null) => string}}
 */
const SHOWN = {
  percent: (value) => percent(value / 100),
  minutes: (value) => duration(60_000 * value),
  money: (value, currency) => (currency ? money(String(value), currency) : number(value)),
};

/**
 * A number of a kind with its unit.
 * @param {Kind} kind
 * @param {number} value
 * @param {string | null} currency
 */
export const amount = ({ unit }, value, currency) =>
  SHOWN[unit]?.(value, currency) ??
  `${value.toLocaleString("en")} ${value === 1 ? unit.slice(0, -1) : unit}`;

/**
 * @param {Kind} kind
 * @param {string | null} currency
 * @param {number | string | null} window
 * @param {number | string} threshold when it fires
 */
export const say = (kind, currency, window, threshold) =>
  kind.about
    .replace("{value}", () => {
      const shown = amount(kind, Number(threshold), currency);
      return kind.firesBelow ? `less than ${shown}` : `${shown} or more`;
    })
    .replace(/\(days: \{window\}\)/, `(${count(Number(window), "day")})`)
    .replace("{window}", String(window));

/**
 * @param {object} given
 * @param {string} given.tenant
 * @param {Kind[]} given.kinds
 * @param {string | null} given.currency of amounts; null without a price
 * @param {Alert | null} given.alert the one to change
 * @param {Preset} [given.preset] what a new one begins with
 * @param {string} given.me the reader's address
 */
export function makeForm({ tenant, kinds, currency, alert, preset, me }) {
  const name = input("name", alert?.name ?? preset?.name, { maxlength: 100, required: true });
  const kind = select(
    "kind",
    kinds.map((one) => [one.kind, one.kind.replaceAll("-", " ")]),
    alert?.kind ?? preset?.kind ?? kinds[0].kind,
  );
  const about = fine();
  const threshold = input("threshold", alert?.threshold, { type: "number", step: "any", min: 0 });
  const window = input("window", alert?.window, { type: "number", step: 1, min: 1 });
  const [thresholdField, windowField] = [
    field("Fires from", threshold, " "),
    field("Looks back", window, " "),
  ];
  const from = input("from", alert?.quietHours?.from, { type: "time" });
  const until = input("to", alert?.quietHours?.to, { type: "time" });
  const enabled = checkbox("enabled", alert?.enabled ?? true);
  const rows = h("div");
  const add = (/** @type {Contract.AlertChannel} */ channel) => rows.append(channelRow(channel));
  const chosen = () => /** @type {Kind} */ (kinds.find((one) => one.kind === kind.value));
  const describe = () => {
    const one = chosen();
    about.textContent = `Fires when: ${say(one, currency, window.value, threshold.value)}.`;
    /** @type {Element} */ (thresholdField.lastChild).textContent =
      one.unit === "money" && !currency
        ? "Set a price of the warehouse in Configuration first: without one there is no number."
        : `In ${one.unit === "money" ? currency : one.unit}, above 0, at most ${number(one.maxThreshold)}.`;
    /** @type {Element} */ (windowField.lastChild).textContent =
      `In ${one.windowUnit}, at most ${one.maxWindow}.`;
    windowField.hidden = one.window === null;
  };
  const useDefaults = () => {
    threshold.value = String(chosen().threshold);
    window.value = String(chosen().window ?? "");
    describe();
  };
  kind.addEventListener("change", useDefaults);
  for (const one of [threshold, window]) one.addEventListener("input", describe);
  if (alert) describe();
  else useDefaults();
  for (const channel of alert?.channels ?? [{ type: /** @type {const} */ ("email"), to: me }])
    add(channel);
  /** @returns {Contract.AlertRequest} */
  const read = () => ({
    name: name.value.trim(),
    kind: chosen().kind,
    threshold: Number(threshold.value),
    ...(chosen().window !== null && { window: Number(window.value) }),
    channels: [...rows.children].map(readChannel),
    quietHours: from.value && until.value ? { from: from.value, to: until.value } : null,
    enabled: enabled.checked,
  });
  const test = async () => {
    for (const one of rows.querySelectorAll("[role=status]")) one.remove();
    const asked = [...rows.children];
    const body = {
      ...read(),
      name: name.value.trim() || "New alert",
      // A receiver verifies the signature of the alert that it knows.
      ...(alert && { alertId: alert.id }),
    };
    const { tests } = await call("POST /tenants/{tenant}/alerts/test", { tenant, body });
    tests.forEach(({ accepted, answer }, index) =>
      asked[index].append(
        h(
          "p.small",
          { role: "status" },
          badge(accepted ? "sent" : "not sent", accepted ? "good" : "bad"),
          " ",
          answer,
        ),
      ),
    );
  };
  return {
    element: h(
      "div",
      field("Name", name),
      field("What", kind),
      about,
      thresholdField,
      windowField,
      h(
        "fieldset",
        h("legend", "Who hears"),
        rows,
        h(
          "div.row",
          button("Add a channel", () => add({ type: "email" }), "small"),
          button("Send a test", test, "small"),
        ),
      ),
      h("div.row", field("Quiet from (UTC)", from), field("Quiet until (UTC)", until)),
      h("label.row", enabled, "Switched on"),
    ),
    read,
  };
}

/** @param {Contract.AlertChannel} channel */
function channelRow(channel) {
  const type = select("type", CHANNELS, channel.type, { "aria-label": "Type of channel" });
  const target = input("channels", channel.to ?? channel.key ?? channel.url, {
    "aria-label": "Address",
    required: true,
  });
  const hint = () =>
    target.setAttribute("placeholder", TARGETS[type.value] ?? "https://hooks.example.com/…");
  type.addEventListener("change", hint);
  hint();
  /** @type {HTMLElement} */
  const row = h(
    "div.row",
    type,
    target,
    // The address of another region, which only programs choose.
    h("input", { type: "hidden", name: "region", value: (channel.key && channel.url) || "" }),
    button("Remove", () => row.remove(), "quiet small"),
  );
  return row;
}

/** @param {Element} row @returns {Contract.AlertChannel} */
function readChannel(row) {
  /** @type {NodeListOf<HTMLInputElement>} */
  const inputs = row.querySelectorAll("[name]");
  const [type, target, url] = [...inputs].map((one) => one.value.trim());
  if (type === "email") return { type, to: target };
  if (type === "pagerduty") return { type, key: target, ...(url && { url }) };
  return { type: /** @type {"webhook" | "slack" | "teams"} */ (type), url: target };
}
