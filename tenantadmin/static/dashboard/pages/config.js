// The configuration of a tenant, and its FQDNs.

import { call } from "../api.js";
import { h } from "../dom.js";
import * as f from "../format.js";
import { can, person } from "../people.js";
import { to } from "../router.js";
import { putConfig } from "../tenantconfig.js";
import { a, badge, button, field, input, notify, panel, select } from "../ui.js";

/** @typedef {Contract.TenantConfig} TenantConfig */

const APPROVALS = /** @type {[Contract.StaffApproval, string][]} */ ([["notify", "owners get a mail"], ["required", "an owner approves it first"]]);

/** @type {import("../router.js").Show} */
export async function show({ tenant, reload, guard }) {
  const [who, config] = await Promise.all([person(), call("GET /config/tenants/{tenant}/config", { tenant })]);
  const mayWrite = can(tenant, "write");
  const off = { disabled: !mayWrite };
  const house = config.warehouse;
  const get = {
    name: input("tenantName", config.tenantName, { ...off, required: true, maxlength: 100 }),
    fqdns: /** @type {HTMLTextAreaElement} */ (h("textarea", { ...off, name: "fqdns", rows: 3, class: "mono", value: config.fqdns.join("\n") })),
    labels: /** @type {HTMLTextAreaElement} */ (h("textarea", { ...off, name: "labels", rows: 3, class: "mono", value: Object.entries(config.labels).map((pair) => pair.join("=")).join("\n") })),
    enabled: /** @type {HTMLInputElement} */ (h("input", { ...off, type: "checkbox", name: "cacheEnabled", checked: config.defaults.cacheEnabled ?? true })),
    ttl: input("ttlSeconds", config.defaults.ttlSeconds, { ...off, type: "number", min: 1 }),
    maxBytes: input("maxEntryBytes", config.defaults.maxEntryBytes, { ...off, type: "number", min: 1 }),
    days: input("retentionDays", config.logging.retentionDays, { ...off, type: "number", min: 1 }),
    values: /** @type {HTMLInputElement} */ (h("input", { ...off, type: "checkbox", name: "storeParameterValues", checked: config.logging.storeParameterValues ?? true })),
    adapter: select("adapterType", [["", "none"], ["databricks", "Databricks"], ["snowflake", "Snowflake"], ["postgresql", "PostgreSQL"]], house?.adapterType ?? "", off),
    host: input("serverHostname", house?.serverHostname, off), port: input("port", house?.port, { ...off, type: "number", min: 1, max: 65535 }),
    path: input("httpPath", house?.httpPath, off), database: input("database", house?.database, off), schema: input("schema", house?.schema, off),
    perUser: /** @type {HTMLTextAreaElement} */ (h("textarea", { ...off, name: "perUserTables", rows: 3, class: "mono", value: (house?.perUserTables ?? []).join("\n") })),
    house: input("warehouseName", house?.warehouseName, off), credential: input("credentialRef", house?.credentialRef, off),
  };
  const prices = /** @type {HTMLTextAreaElement} */ (h("textarea", { ...off, name: "pricing", rows: 4, class: "mono", spellcheck: "false", value: house?.pricing?.length ? JSON.stringify(house.pricing, null, 1) : "" }));
  const usual = button("Insert a price", async () => {
    prices.value = JSON.stringify([...[parsed(prices.value || "[]")].flat(), { from: f.isoDay(new Date()), currency: "USD", perHour: "3.00", ...(PRICES[get.adapter.value] ?? PRICES.snowflake) }], null, 1);
  });
  const approval = select("staffApproval", APPROVALS, config.access.staffApproval ?? "notify", { disabled: who.roles.get(tenant) !== "owner" });
  const whole = (/** @type {HTMLInputElement} */ one) => (one.value === "" ? undefined : Number(one.value));
  const text = (/** @type {HTMLInputElement} */ one) => one.value.trim() || undefined;
  // An empty list says that there are no such tables; an absent one says nothing.
  const perUserTables = () => (lines(get.perUser.value).length || house?.perUserTables ? lines(get.perUser.value) : undefined);
  const document_ = () => ({
    tenantName: get.name.value.trim(), fqdns: lines(get.fqdns.value), labels: Object.fromEntries(lines(get.labels.value).map(labelOf)), seq: config.seq,
    defaults: { cacheEnabled: get.enabled.checked, ttlSeconds: whole(get.ttl), maxEntryBytes: whole(get.maxBytes) },
    logging: { retentionDays: whole(get.days), storeParameterValues: get.values.checked },
    access: { staffApproval: /** @type {Contract.StaffApproval} */ (approval.value) },
    ...(get.adapter.value && { warehouse: { adapterType: /** @type {Contract.AdapterType} */ (get.adapter.value), serverHostname: get.host.value.trim(), port: whole(get.port), httpPath: text(get.path),
      database: text(get.database), schema: text(get.schema), warehouseName: text(get.house), credentialRef: text(get.credential), perUserTables: perUserTables(),
      pricing: prices.value.trim() ? parsed(prices.value) : house?.pricing && [] } }),
  });
  const comment = input("comment", "", { maxlength: 500, autocomplete: "off", placeholder: "Comment (optional)", "aria-label": "Comment" });
  let saved = JSON.stringify(document_());
  guard(() => mayWrite && JSON.stringify(document_()) !== saved);
  const save = async () => {
    await putConfig(tenant, document_(), comment.value);
    saved = JSON.stringify(document_());
    notify("Saved.");
    reload();
  };
  return h("div", null,
    h("header", { class: "page-head" }, h("div", null, h("h1", null, "Configuration"),
      h("p", { class: "muted" }, `Revision ${config.seq}, written ${f.ago(config.modifiedAt)} · `, a(to(tenant, "history", { kind: "config" }), "History"))),
    mayWrite && h("div", { class: "row" }, comment, button("Save", save, "primary"))),
    panel("Tenant", badge(`plan ${config.plan}`), h("div", { class: "form" }, field("Name", get.name), field("Host names (FQDNs)", get.fqdns, "One on each line: where the Gateway is reached."),
      field("Labels", get.labels, "name=value, one on each line"))),
    panel("Cache", null, h("div", { class: "form" }, field("TTL in seconds", get.ttl, "Of rules that give none."), field("Largest result in bytes", get.maxBytes, "Larger ones are not stored."),
      h("label", { class: "check" }, get.enabled, "The cache is on"))),
    panel("Warehouse", null, h("div", { class: "form" }, field("Kind", get.adapter), field("Host", get.host), field("Port", get.port), field("HTTP path", get.path), field("Database", get.database),
      field("Schema", get.schema), field("Warehouse", get.house), field("Credential", get.credential, "The name of a secret of the Gateway, never the secret."),
      field("Tables that differ per user", get.perUser, "Patterns such as hr.*, one on each line: row-level security or column masks. Rules may not share their results."))),
    panel("Prices", a(to(tenant, "savings"), "Savings"), h("div", { class: "form" }, field("What an hour of the warehouse costs", prices, "JSON, the oldest price first. The contract with the provider decides."), mayWrite && usual)),
    panel("Log", null, h("div", { class: "form" }, field("Days to keep", get.days), h("label", { class: "check" }, get.values, "Store the values of parameters"),
      field("When staff of the service want to read it", approval, "Only owners of the tenant change this."))),
    h("p", { class: "muted small" }, "Tenant ", h("code", null, config.tenantId), " of account ", h("code", null, config.accountId)));
}

/** @type {Record<string, object>} how warehouses are usually billed; docs/savings.md has the sources */
const PRICES = { snowflake: { billing: "suspending", autoSuspendSeconds: 600, minimumSeconds: 60 }, databricks: { billing: "suspending", autoSuspendSeconds: 600, minimumSeconds: 0 }, postgresql: { billing: "always-on" } };

/** @param {string} json the text itself if it is not JSON, which the service refuses */
const parsed = (json) => { try { return JSON.parse(json); } catch { return json; } };

/** @param {string} value */
const lines = (value) => value.split("\n").map((line) => line.trim()).filter(Boolean);

/** @param {string} line */
const labelOf = (line) => {
  const at = line.indexOf("=");
  return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
};
