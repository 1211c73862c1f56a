// Alerts: which numbers are watched, who hears of them, when they fired, and how messages ended.

import { call } from "../api.js";
import { h } from "../dom.js";
import { NONE, ago, count, duration, number, percent } from "../format.js";
import { can } from "../people.js";
import { go, to } from "../router.js";
import { ask, badge, button, empty, field, input, notify, panel, select, table } from "../ui.js";

const STATES = /** @type {Record<Contract.Alert["state"], [string, string]>} */ ({
  firing: ["fires", "bad"], quiet: ["quiet", "good"], unknown: ["no number yet", ""],
});
const ENDS = /** @type {Record<string, string>} */ ({ delivered: "good", failed: "bad", skipped: "warn", queued: "info" });
const CHANNELS = /** @type {[Contract.AlertChannelType, string][]} */ ([["email", "mail to a member"], ["webhook", "signed webhook"], ["slack", "Slack"]]);
/** @type {Record<Contract.AlertUnit, (value: number) => string>} */
const SHOW = {
  points: (value) => `${value.toLocaleString("en-US", { maximumFractionDigits: 2 })} points`, percent: (value) => percent(value / 100),
  minutes: (value) => duration(60_000 * value), statements: number, builds: number,
};
const UNITS = /** @type {Record<Contract.AlertUnit, string>} */ ({ points: "points", percent: "%", minutes: "min", statements: "statements", builds: "builds" });

/** @type {import("../router.js").Show} */
export async function show({ tenant, query, reload }) {
  const writes = can(tenant, "write");
  const [{ alerts, kinds, limit }, { firings }] = await Promise.all([
    call("GET /tenants/{tenant}/alerts", { tenant }), call("GET /tenants/{tenant}/alerts/history", { tenant }),
  ]);
  const kindOf = (/** @type {Contract.AlertKind} */ name) => /** @type {Contract.AlertKindDescription} */ (kinds.find((kind) => kind.kind === name));
  const amount = (/** @type {Contract.AlertKind} */ kind, /** @type {number | null} */ value) => (value === null ? NONE : SHOW[kindOf(kind).unit](value));
  const open = alerts.find((alert) => alert.id === query.get("alert"));

  const edit = async (/** @type {Contract.Alert | null} */ alert) => {
    const form = makeForm(kinds, alert);
    const done = await ask({ title: alert ? `Change “${alert.name}”` : "New alert", action: alert ? "Save" : "Create", body: form.element, wide: true,
      run: () => (alert ? call("PUT /tenants/{tenant}/alerts/{alertId}", { tenant, alertId: alert.id, body: form.read() })
        : call("POST /tenants/{tenant}/alerts", { tenant, body: form.read() })) });
    if (done) reload();
  };
  const remove = async (/** @type {Contract.Alert} */ alert) => {
    const done = await ask({ title: `Delete “${alert.name}”?`, body: "Its history is deleted too.", action: "Delete", danger: true,
      run: () => call("DELETE /tenants/{tenant}/alerts/{alertId}", { tenant, alertId: alert.id }) });
    if (done) reload();
  };
  const test = async (/** @type {Contract.Alert} */ alert) => {
    const { deliveries } = await call("POST /tenants/{tenant}/alerts/{alertId}/test", { tenant, alertId: alert.id });
    notify(`${count(deliveries.length, "message")} sent within seconds. “Messages” shows how that ends.`);
  };

  return h("div", null,
    h("header", { class: "page-head" }, h("h1", null, "Alerts"), writes && button("New alert", () => edit(null), "primary")),
    alerts.length ? panel(`${number(alerts.length)} of ${number(limit)} alerts`, null, table([
      { head: "Alert", cell: (row) => [h("strong", null, row.name), h("p", { class: "muted small" }, say(kindOf(row.kind), row.window))], sort: (row) => row.name },
      { head: "State", cell: (row) => (row.enabled ? [badge(...STATES[/** @type {Contract.Alert["state"]} */ (row.state)]), row.since && h("p", { class: "muted small" }, ago(row.since))] : badge("off")), sort: (row) => row.state },
      { head: "Now", number: true, cell: (row) => amount(row.kind, row.value) },
      { head: "Threshold", number: true, cell: (row) => amount(row.kind, row.threshold) },
      { head: "Who hears", cell: (row) => row.channels.map((/** @type {Contract.AlertChannel} */ channel) => h("p", { class: "small" }, where(channel))) },
      { head: "Actions", hidden: true, number: true, cell: (row) => h("div", { class: "row end" },
        button("Messages", () => go(`${to(tenant, "alerts").slice(1)}?alert=${row.id}`), "quiet small"),
        writes && [button("Test", () => test(row), "quiet small"), button("Change", () => edit(row), "quiet small"), button("Delete", () => remove(row), "quiet small")]) },
    ], alerts, { label: "Alerts" })) : empty("No number is watched.", h("p", { class: "muted" },
      "An alert tells members, a webhook or Slack when the hit rate or the savings fall, the log is late, or requests fail.", !writes && " An admin of the tenant makes them.")),
    open && await messages(tenant, open),
    firings.length > 0 && panel("History", null, table([
      { head: "Alert", cell: (row) => row.name, sort: (row) => row.name },
      { head: "Began", cell: (row) => ago(row.startedAt), class: "nowrap", sort: (row) => row.startedAt },
      { head: "Ended", cell: (row) => (row.endedAt ? ago(row.endedAt) : badge("fires", "bad")), class: "nowrap", sort: (row) => row.endedAt },
      { head: "Number", number: true, cell: (row) => amount(row.kind, row.value) },
      { head: "Threshold", number: true, cell: (row) => amount(row.kind, row.threshold) },
    ], firings, { label: "History" })));
}

/**
 * The panel with the messages of an alert.
 * @param {string} tenant
 * @param {Contract.Alert} alert
 */
async function messages(tenant, alert) {
  const { deliveries } = await call("GET /tenants/{tenant}/alerts/{alertId}/deliveries", { tenant, alertId: alert.id });
  return panel(`Messages of “${alert.name}”`, null, deliveries.length ? table([
    { head: "Made", cell: (row) => ago(row.createdAt), class: "nowrap", sort: (row) => row.createdAt },
    { head: "About", cell: (row) => row.occasion },
    { head: "To", cell: (row) => where(row.channel) },
    { head: "State", cell: (row) => [badge(row.state, ENDS[row.state]), row.error && h("p", { class: "muted small" }, row.error, row.dueAt && ` Next attempt: ${ago(row.dueAt)}.`)], sort: (row) => row.state },
    { head: "Attempts", number: true, cell: (row) => number(row.attempts) },
  ], deliveries, { label: "Messages" }) : h("p", { class: "pad muted" }, "No message yet."),
  alert.signingSecret && alert.channels.some((channel) => channel.type === "webhook")
    && h("p", { class: "pad small" }, "Secret for the receiver of webhooks: ", h("code", null, alert.signingSecret)));
}

/** @param {Contract.AlertChannel} channel */
const where = (channel) => `${channel.type}: ${channel.to ?? new URL(channel.url ?? "").host}`;

/**
 * What the number of a kind is.
 * @param {Contract.AlertKindDescription} kind
 * @param {number | null} window
 */
const say = (kind, window) => kind.about.replace("{value}", kind.unit === "percent" ? "N%" : /points|minutes/.test(kind.unit) ? `N ${kind.unit}` : "N").replace("{window}", String(window));

/**
 * The form of an alert, and a function that returns what it says.
 * @param {Contract.AlertKindDescription[]} kinds
 * @param {Contract.Alert | null} alert
 */
function makeForm(kinds, alert) {
  const name = input("name", alert?.name, { maxlength: 100, required: true });
  const kind = select("kind", kinds.map((one) => [one.kind, one.kind.replaceAll("-", " ")]), alert?.kind ?? kinds[0].kind);
  const about = h("p", { class: "muted small" });
  const threshold = input("threshold", alert?.threshold, { type: "number", step: "any", min: 0 });
  const window = input("window", alert?.window, { type: "number", step: 1, min: 1 });
  const windowField = field("Window", window);
  const thresholdHint = h("span", { class: "hint" });
  const from = input("from", alert?.quietHours?.from, { type: "time" });
  const until = input("to", alert?.quietHours?.to, { type: "time" });
  const enabled = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox", name: "enabled", checked: alert?.enabled ?? true }));
  const rows = h("div", null);
  const add = (/** @type {Contract.AlertChannel} */ channel) => rows.append(channelRow(channel));
  const chosen = () => /** @type {Contract.AlertKindDescription} */ (kinds.find((one) => one.kind === kind.value));
  const describe = () => {
    const one = chosen();
    about.textContent = `${say(one, one.window)}.`;
    thresholdHint.textContent = `In ${UNITS[one.unit]}, above 0, at most ${number(one.maxThreshold)}.`;
    windowField.hidden = one.window === null;
    window.setAttribute("aria-label", `Window in ${one.windowUnit}, at most ${one.maxWindow}`);
    /** @type {Element} */ (windowField.firstChild).textContent = `Window (${one.windowUnit}, at most ${one.maxWindow})`;
  };
  const useDefaults = () => {
    threshold.value = String(chosen().threshold);
    window.value = String(chosen().window ?? "");
    describe();
  };
  kind.addEventListener("change", useDefaults);
  if (alert) describe();
  else useDefaults();
  for (const channel of alert?.channels ?? [{ type: /** @type {const} */ ("email") }]) add(channel);
  return {
    element: h("div", null, field("Name", name), field("What", kind), about,
      h("label", { class: "field" }, h("span", { class: "label" }, "Threshold"), threshold, thresholdHint), windowField,
      h("fieldset", null, h("legend", null, "Who hears"), rows, button("Add a channel", () => add({ type: "email" }), "small")),
      h("div", { class: "row" }, field("Quiet from (UTC)", from), field("Quiet until (UTC)", until)),
      h("label", { class: "row" }, enabled, "Switched on")),
    /** @returns {Contract.AlertRequest} */
    read: () => ({
      name: name.value.trim(), kind: chosen().kind, threshold: Number(threshold.value),
      ...(chosen().window === null ? {} : { window: Number(window.value) }),
      channels: [...rows.children].map(readChannel),
      quietHours: from.value && until.value ? { from: from.value, to: until.value } : null,
      enabled: enabled.checked,
    }),
  };
}

/** @param {Contract.AlertChannel} channel */
function channelRow(channel) {
  const type = select("type", CHANNELS, channel.type, { "aria-label": "Type of channel" });
  const target = input("target", channel.to ?? channel.url, { "aria-label": "Address" });
  const hint = () => target.setAttribute("placeholder", type.value === "email" ? "name@example.com" : "https://hooks.example.com/…");
  type.addEventListener("change", hint);
  hint();
  const row = h("div", { class: "row" }, type, target, button("Remove", () => row.remove(), "quiet small"));
  return row;
}

/** @param {Element} row */
function readChannel(row) {
  const [type, target] = /** @type {[HTMLSelectElement, HTMLInputElement]} */ ([row.querySelector("select"), row.querySelector("input")]);
  const address = target.value.trim();
  return type.value === "email" ? { type: /** @type {const} */ ("email"), to: address }
    : { type: /** @type {"webhook" | "slack"} */ (type.value), url: address };
}
