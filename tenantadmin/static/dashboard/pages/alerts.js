// Alerts: which numbers are watched, who hears of them, when they fired, and how messages ended.

import { amount, makeForm, say } from "../alertform.js";
import { call, callWithTag, hasStatus } from "../api.js";
import { ago, count, number, when } from "../format.js";
import { whenAsked } from "../forms.js";
import { can, person } from "../people.js";
import { staff } from "../staff.js";
import {
  acts,
  age,
  ask,
  badge,
  button,
  empty,
  fine,
  h,
  notify,
  num,
  pageHead,
  panel,
  table,
  tablePanel,
  text,
  to,
} from "../ui.js";

/** @typedef {Contract.Alert} Alert */
/** @typedef {Contract.AlertKindDescription} Kind */
/** @typedef {import("../alertform.js").Preset} Preset */

/** @type {Record<Alert["state"], [string, string]>} */
const STATES = {
  firing: ["fires", "bad"],
  quiet: ["not firing", "good"],
  unknown: ["not known", ""],
};
/** @type {Texts} */
const ENDS = { delivered: "good", failed: "bad", skipped: "warn", queued: "info" };
/** @type {Preset[]} what to begin with */
const PRESETS = [
  { kind: "log-late", name: "The log is late" },
  { kind: "errors", name: "Requests fail" },
  { kind: "leak", name: "Shared results" },
  { kind: "hit-rate-fell", name: "The hit rate fell" },
  { kind: "bill", name: "The bill of the month" },
];

/** @type {Show} */
export async function show(context) {
  const { tenant, query, reload } = context;
  // Staff do not see where messages go, so they change no alert.
  const writes = can(tenant, "write") && !staff();
  const [{ email }, { alerts, kinds, limit, currency }, { firings }] = await Promise.all([
    person(),
    call("GET /tenants/{tenant}/alerts", { tenant }),
    call("GET /tenants/{tenant}/alerts/history", { tenant }),
  ]);
  const kindOf = (/** @type {string} */ name) =>
    /** @type {Kind} */ (kinds.find((kind) => kind.kind === name));
  const open = alerts.find((alert) => alert.id === query.get("alert"));

  const edit = async (
    /** @type {string | null} */ alertId,
    /** @type {Preset | undefined} */ preset,
  ) => {
    const { data: alert, etag } = alertId
      ? await callWithTag("GET /tenants/{tenant}/alerts/{alertId}", { tenant, alertId })
      : { data: null, etag: "" };
    const form = makeForm({ tenant, kinds, currency, alert, preset, me: email });
    return ask({
      title: alert ? `Change “${alert.name}”` : "New alert",
      action: alert ? "Save" : "Create",
      body: form.element,
      wide: true,
      then: reload,
      run: () =>
        alert
          ? call(
              "PUT /tenants/{tenant}/alerts/{alertId}",
              { tenant, alertId: alert.id, body: form.read() },
              { ifMatch: etag },
            ).catch((error) => {
              throw hasStatus(error, 409)
                ? new Error("Another user has changed this alert. Close the form to see it.")
                : error;
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
  const mailMe = async (/** @type {Preset} */ preset) => {
    await call("POST /tenants/{tenant}/alerts", {
      tenant,
      body: { ...preset, channels: [{ type: "email", to: email }] },
    });
    notify(`“${preset.name}” mails you from now on.`);
    reload();
  };
  const unwatched = PRESETS.filter(({ kind }) => !alerts.some((alert) => alert.kind === kind));
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
                fine(`Fires when: ${say(kindOf(row.kind), currency, row.window, row.threshold)}`),
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
                  button("Change", () => edit(row.id), "quiet small"),
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
            "An alert tells members, a webhook, Slack, Teams or PagerDuty when the hit rate or the savings fall, the bill passes a sum, the log is late, or requests fail.",
            !writes && " An admin of the tenant makes them.",
          ),
        ),
    writes &&
      unwatched.length > 0 &&
      tablePanel(
        alerts.length ? "Not watched yet" : "Begin with one of these",
        null,
        [
          {
            head: "Alert",
            cell: ({ name, kind }) => {
              const one = kindOf(kind);
              return [
                h("strong", name),
                fine(`Fires when: ${say(one, currency, one.window, one.threshold)}`),
              ];
            },
            class: "value",
          },
          acts((preset) =>
            h(
              "div.acts",
              kindOf(preset.kind).unit !== "money" &&
                button("Mail me", () => mailMe(preset), "small"),
              button("Choose…", () => edit(null, preset), "quiet small"),
            ),
          ),
        ],
        unwatched,
        { label: "Presets" },
      ),
    open && (await messages(context, open)),
    firings.length > 0 &&
      tablePanel(
        "History",
        null,
        [
          text("Alert", "name"),
          age("Began", "startedAt"),
          text("Ended", "endedAt", (at) => (at ? ago(at) : badge("still fires", "bad"))),
          text("Reached", "valueText"),
          {
            head: "Fired from",
            number: true,
            cell: (row) => amount(kindOf(row.kind), row.threshold, currency),
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
