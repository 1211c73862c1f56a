// Alerts: which numbers are watched, who hears of them, when they fired, and how messages ended.

import { call } from "../api.js";
import { ago, count, duration, number, percent, when } from "../format.js";
import { whenAsked } from "../forms.js";
import { can, person } from "../people.js";
import { staff } from "../staff.js";
import {
  acts,
  age,
  ask,
  badge,
  button,
  checkbox,
  empty,
  field,
  fine,
  h,
  input,
  notify,
  num,
  pageHead,
  panel,
  select,
  table,
  tablePanel,
  text,
  to,
} from "../ui.js";

/** @typedef {Contract.Alert} Alert */
/** @typedef {Contract.AlertKindDescription} Kind */

/** @type {Record<Alert["state"], [string, string]>} */
const STATES = {
  firing: ["fires", "bad"],
  quiet: ["not firing", "good"],
  unknown: ["not known", ""],
};
/** @type {Texts} */
const ENDS = { delivered: "good", failed: "bad", skipped: "warn", queued: "info" };
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
/** @type {Record<Contract.AlertUnit, (value: number) => string>} */
const SHOW = {
  points: (value) => `${value} ${value === 1 ? "point" : "points"}`,
  percent: (value) => percent(value / 100),
  minutes: (value) => duration(60_000 * value),
  statements: (value) => count(value, "statement"),
  builds: (value) => count(value, "build"),
};

/** @type {Show} */
export async function show(context) {
  const { tenant, query, reload } = context;
  // Staff do not see where messages go, so they change no alert.
  const writes = can(tenant, "write") && !staff();
  const [{ email }, { alerts, kinds, limit }, { firings }] = await Promise.all([
    person(),
    call("GET /tenants/{tenant}/alerts", { tenant }),
    call("GET /tenants/{tenant}/alerts/history", { tenant }),
  ]);
  const kindOf = (/** @type {string} */ name) =>
    /** @type {Kind} */ (kinds.find((kind) => kind.kind === name));
  const open = alerts.find((alert) => alert.id === query.get("alert"));

  const edit = (/** @type {Alert | null} */ alert) => {
    const form = makeForm(kinds, alert, email);
    return ask({
      title: alert ? `Change “${alert.name}”` : "New alert",
      action: alert ? "Save" : "Create",
      body: form.element,
      wide: true,
      then: reload,
      run: () =>
        alert
          ? call("PUT /tenants/{tenant}/alerts/{alertId}", {
              tenant,
              alertId: alert.id,
              body: form.read(),
            })
          : call("POST /tenants/{tenant}/alerts", { tenant, body: form.read() }),
    });
  };
  const isNew = (/** @type {Alert} */ one) => one.enabled && !one.evaluatedAt;
  if (alerts.some(isNew))
    context.until(
      async () => !(await call("GET /tenants/{tenant}/alerts", { tenant })).alerts.some(isNew),
    );
  if (writes) whenAsked(context, () => edit(null));
  const remove = (/** @type {Alert} */ { name, id }) =>
    ask({
      title: `Delete “${name}”?`,
      body: "Its history will go too.",
      action: "Delete",
      danger: true,
      then: reload,
      run: () => call("DELETE /tenants/{tenant}/alerts/{alertId}", { tenant, alertId: id }),
    });
  const test = async (/** @type {Alert} */ alert) => {
    const { deliveries } = await call("POST /tenants/{tenant}/alerts/{alertId}/test", {
      tenant,
      alertId: alert.id,
    });
    notify(
      `${count(deliveries.length, "test message")} will be sent within seconds. “Messages” shows how that ends.`,
    );
  };

  return h(
    "div",
    pageHead("Alerts", null, writes && button("New alert", () => edit(null), "primary")),
    alerts.length
      ? tablePanel(
          `${number(alerts.length)} of ${number(limit)} alerts`,
          null,
          [
            {
              head: "Alert",
              cell: (row) => [
                h("strong", row.name),
                fine(`Fires when: ${say(kindOf(row.kind), row.window, row.threshold)}`),
              ],
              class: "value",
              sort: (row) => row.name,
            },
            {
              head: "State",
              cell: (row) =>
                row.enabled
                  ? [
                      badge(...STATES[/** @type {Alert["state"]} */ (row.state)]),
                      fine(row.valueText),
                    ]
                  : badge("off"),
              sort: (row) => row.state,
            },
            {
              head: "Last fired",
              class: "nowrap",
              cell: ({ id }) =>
                firings.filter((one) => one.alertId === id).map((one) => ago(one.startedAt))[0] ??
                "never",
            },
            {
              head: "Who hears",
              cell: (row) =>
                row.channels.map((/** @type {Contract.AlertChannel} */ channel) =>
                  h("p.small", where(channel)),
                ),
            },
            acts((row) =>
              h(
                "div.acts",
                h(
                  "a.button.quiet.small",
                  { href: to(tenant, "alerts", { alert: row.id }) },
                  "Messages",
                ),
                writes && [
                  button("Send a test", () => test(row), "quiet small"),
                  button("Change", () => edit(row), "quiet small"),
                  button("Delete", () => remove(row), "quiet small"),
                ],
              ),
            ),
          ],
          alerts,
          { label: "Alerts" },
        )
      : empty(
          "No alert yet.",
          h(
            "p.muted",
            "An alert tells members, a webhook, Slack, Teams or PagerDuty when the hit rate or the savings fall, the log is late, or requests fail.",
            !writes && " An admin of the tenant makes them.",
          ),
        ),
    open && (await messages(context, open)),
    firings.length > 0 &&
      tablePanel(
        "History",
        null,
        [
          text("Alert", "name"),
          age("Began", "startedAt"),
          text("Ended", "endedAt", (at) => (at ? ago(at) : badge("fires", "bad"))),
          text("Reached", "valueText"),
          {
            head: "Fired from",
            number: true,
            cell: (row) => SHOW[kindOf(row.kind).unit](row.threshold),
          },
        ],
        firings,
      ),
  );
}

/**
 * @param {Context} context
 * @param {Alert} alert the panel with its messages
 */
async function messages({ tenant, reload }, alert) {
  const { deliveries } = await call("GET /tenants/{tenant}/alerts/{alertId}/deliveries", {
    tenant,
    alertId: alert.id,
  });
  return panel(
    `Messages of “${alert.name}”`,
    null,
    table(
      [
        age("Made", "createdAt"),
        text("About", "occasion"),
        text("To", "channel", where),
        {
          head: "State",
          cell: (row) => [
            badge(row.state, ENDS[row.state]),
            row.error && fine(row.error, row.dueAt && ` Next attempt: ${ago(row.dueAt)}.`),
          ],
          sort: (row) => row.state,
        },
        num("Attempts", "attempts"),
      ],
      deliveries,
      { label: "Messages", none: "No message yet." },
    ),
    alert.signingSecret &&
      alert.channels.some((channel) => channel.type === "webhook") &&
      h(
        "p.pad.small",
        "Secret for the receiver of webhooks: ",
        h("code", alert.signingSecret),
        alert.formerSecretEndsAt &&
          ` The former secret signs too until ${when(alert.formerSecretEndsAt)}.`,
        " ",
        button("New secret", async () => {
          await call("POST /tenants/{tenant}/alerts/{alertId}/rotate", {
            tenant,
            alertId: alert.id,
          });
          notify("The former secret signs too for a day. Give the receiver the new one.");
          reload();
        }),
      ),
  );
}

/** @param {Contract.AlertChannel} channel */
const where = (channel) => `${channel.type}: ${channel.to ?? new URL(channel.url ?? "").host}`;

/**
 * @param {Kind} kind
 * @param {number | string | null} window
 * @param {number | string} threshold when it fires
 */
const say = (kind, window, threshold) =>
  kind.about
    .replace("{value}", `${SHOW[kind.unit](Number(threshold))} or more`)
    .replace(/\(days: \{window\}\)/, `(${count(Number(window), "day")})`)
    .replace("{window}", String(window));

/** @param {Kind[]} kinds @param {Alert | null} alert @param {string} me the reader's address */
function makeForm(kinds, alert, me) {
  const name = input("name", alert?.name, { maxlength: 100, required: true });
  const kind = select(
    "kind",
    kinds.map((one) => [one.kind, one.kind.replaceAll("-", " ")]),
    alert?.kind ?? kinds[0].kind,
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
    about.textContent = `Fires when: ${say(one, window.value, threshold.value)}.`;
    /** @type {Element} */ (thresholdField.lastChild).textContent =
      `In ${one.unit}, above 0, at most ${number(one.maxThreshold)}.`;
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
        button("Add a channel", () => add({ type: "email" }), "small"),
      ),
      h("div.row", field("Quiet from (UTC)", from), field("Quiet until (UTC)", until)),
      h("label.row", enabled, "Switched on"),
    ),
    /** @returns {Contract.AlertRequest} */
    read: () => ({
      name: name.value.trim(),
      kind: chosen().kind,
      threshold: Number(threshold.value),
      ...(chosen().window !== null && { window: Number(window.value) }),
      channels: [...rows.children].map(readChannel),
      quietHours: from.value && until.value ? { from: from.value, to: until.value } : null,
      enabled: enabled.checked,
    }),
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
