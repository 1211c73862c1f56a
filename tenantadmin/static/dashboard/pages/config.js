// The configuration of a tenant, and its FQDNs.

import { call } from "../api.js";
import * as f from "../format.js";
import { can, person } from "../people.js";
import { putConfig } from "../tenantconfig.js";
import { a, area, badge, button, checkbox, field, fill, fine, h, input, notify, pageHead, panel, select, to } from "../ui.js";

/** @typedef {Contract.TenantConfig} TenantConfig */

const APPROVALS = { notify: "owners get a mail", required: "an owner approves it first" };

/** @type {Show} */
export async function show({ tenant, reload, guard }) {
  const [who, config] = await Promise.all([person(), call("GET /config/tenants/{tenant}/config", { tenant })]);
  const mayWrite = can(tenant, "write");
  const off = { disabled: !mayWrite };
  const house = config.warehouse;
  const numeric = (/** @type {string} */ name, /** @type {number | undefined} */ value) => input(name, value, { ...off, type: "number", min: 1, max: name === "port" ? 65535 : null });
  const spoken = (/** @type {string} */ label, /** @type {HTMLInputElement} */ amount, /** @type {string} */ hint, /** @type {(value: number) => string} */ show) => {
    const said = h("span");
    const say = () => fill(said, amount.value && `${show(Number(amount.value))}. `);
    amount.addEventListener("input", say);
    say();
    return field(label, amount, [said, hint]);
  };
  const line = (/** @type {string} */ name, /** @type {string | undefined} */ value) => input(name, value, off);
  const get = {
    name: input("tenantName", config.tenantName, { ...off, required: true, maxlength: 100 }),
    fqdns: area("fqdns", config.fqdns.join("\n"), off),
    labels: area("labels", Object.entries(config.labels).map((pair) => pair.join("=")).join("\n"), off),
    enabled: checkbox("cacheEnabled", config.defaults.cacheEnabled ?? true, off),
    ttl: numeric("ttlSeconds", config.defaults.ttlSeconds),
    maxBytes: numeric("maxEntryBytes", config.defaults.maxEntryBytes),
    days: numeric("retentionDays", config.logging.retentionDays),
    values: checkbox("storeParameterValues", config.logging.storeParameterValues ?? true, off),
    adapter: select("adapterType", { "": "none", databricks: "Databricks", snowflake: "Snowflake", postgresql: "PostgreSQL" }, house?.adapterType ?? "", off),
    host: line("serverHostname", house?.serverHostname), port: numeric("port", house?.port),
    path: line("httpPath", house?.httpPath), database: line("database", house?.database), schema: line("schema", house?.schema),
    perUser: area("perUserTables", (house?.perUserTables ?? []).join("\n"), off),
    house: line("warehouseName", house?.warehouseName), credential: line("credentialRef", house?.credentialRef),
  };
  const prices = area("pricing", house?.pricing?.length ? JSON.stringify(house.pricing, null, 1) : "", { ...off, rows: 4 });
  const usual = button("Insert a price", async () => {
    prices.value = JSON.stringify([...[parsed(prices.value || "[]")].flat(), { from: f.today(), currency: "USD", perHour: "3.00", ...(PRICES[get.adapter.value] ?? PRICES.snowflake) }], null, 1);
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
  return h("div",
    pageHead("Configuration", [`Revision ${config.seq}, written ${f.ago(config.modifiedAt)} · `, a(to(tenant, "history", { kind: "config" }), "History")], mayWrite && [comment, button("Save", save, "primary")]),
    panel("Tenant", badge(`plan ${config.plan}`), h("div.form", field("Name", get.name), field("Host names (FQDNs)", get.fqdns, "One on each line: where the Gateway is reached."),
      field("Labels", get.labels, "name=value, one on each line"))),
    panel("Cache", null, h("div.form", spoken("TTL in seconds", get.ttl, "Of rules that give none.", f.span), spoken("Largest result in bytes", get.maxBytes, "Larger ones are not stored.", f.bytes),
      h("label.check", get.enabled, "The cache is on"))),
    panel("Warehouse", null, h("div.form", field("Kind", get.adapter), field("Host", get.host), field("Port", get.port), field("HTTP path", get.path), field("Database", get.database),
      field("Schema", get.schema), field("Warehouse", get.house), field("Credential", get.credential, "The name of a secret of the Gateway, never the secret."),
      field("Tables that differ per user", get.perUser, "Patterns such as hr.*, one on each line: row-level security or column masks. Rules may not share their results."))),
    panel("Prices", a(to(tenant, "savings"), "Savings"), h("div.form", field("What an hour of the warehouse costs", prices, "JSON, the oldest price first. The contract with the provider decides."), mayWrite && h("div", usual))),
    panel("Log", null, h("div.form", field("Days to keep", get.days), h("label.check", get.values, "Store the values of parameters"),
      field("When staff of the service want to read it", approval, "Only owners of the tenant change this."))),
    fine("Tenant ", h("code", config.tenantId), " of account ", h("code", config.accountId)));
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
