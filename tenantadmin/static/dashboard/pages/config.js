// The configuration of a tenant, and its FQDNs.

import { configOf, weeksOf } from "../api.js";
import * as f from "../format.js";
import { SIZES, TIMES, withUnit } from "../forms.js";
import { can, person, putConfig } from "../people.js";
import { priceFields } from "../prices.js";
import {
  a,
  area,
  badge,
  button,
  checkbox,
  field,
  fill,
  fine,
  h,
  input,
  notify,
  pageHead,
  panel,
  select,
  to,
} from "../ui.js";

/** @typedef {Contract.TenantConfig} TenantConfig */

/**
 * @type
 *   {Record<"serverHostname" | "httpPath" | "database" | "schema" | "warehouseName" |
 *   "credentialRef", string>}
 *   texts of the warehouse
 */
const HOUSE = {
  serverHostname: "Host",
  httpPath: "HTTP path",
  database: "Database",
  schema: "Schema",
  warehouseName: "Warehouse",
  credentialRef: "Credential",
};
const APPROVALS = { notify: "owners get a mail", required: "an owner approves it first" };

/** @type {Show} */
export async function show({ tenant, signal, reload, guard }) {
  const [who, config] = await Promise.all([person(), configOf(tenant)]);
  const mayWrite = can(tenant, "write");
  const off = { disabled: !mayWrite };
  const house = config.warehouse;
  const numeric = (/** @type {string} */ name, /** @type {number | undefined} */ value) =>
    input(name, value, { ...off, type: "number", min: 1, max: name === "port" ? 65535 : null });
  const get = {
    name: input("tenantName", config.tenantName, { ...off, required: true, maxlength: 100 }),
    fqdns: area("fqdns", config.fqdns.join("\n"), off),
    labels: area(
      "labels",
      Object.entries(config.labels)
        .map((pair) => pair.join("="))
        .join("\n"),
      off,
    ),
    enabled: checkbox("cacheEnabled", config.defaults.cacheEnabled ?? true, off),
    ttl: withUnit(
      "Results live for",
      "ttlSeconds",
      config.defaults.ttlSeconds,
      TIMES,
      "The TTL of rules that give none.",
      off,
    ),
    maxBytes: withUnit(
      "Largest result",
      "maxEntryBytes",
      config.defaults.maxEntryBytes,
      SIZES,
      "Larger ones are not stored.",
      off,
    ),
    days: numeric("retentionDays", config.logging.retentionDays),
    values: checkbox("storeParameterValues", config.logging.storeParameterValues ?? true, off),
    adapter: select(
      "adapterType",
      { "": "none", databricks: "Databricks", snowflake: "Snowflake", postgresql: "PostgreSQL" },
      house?.adapterType ?? "",
      off,
    ),
    port: numeric("port", house?.port),
    perUser: area("perUserTables", (house?.perUserTables ?? []).join("\n"), off),
  };
  const texts = /** @type {(keyof typeof HOUSE)[]} */ (Object.keys(HOUSE)).map((name) =>
    input(name, house?.[name], off),
  );
  const prices = priceFields(house?.pricing ?? [], () => get.adapter.value, off);
  // The log says whether the Gateway reaches the warehouse: this service does not connect to it.
  const reached = h("span");
  weeksOf([tenant], signal).then(
    ([week]) => {
      const day = week?.lastDay;
      fill(
        reached,
        day ? `Last day with requests: ${f.dayShort(day)}. ` : "No request yet. ",
        day ? a(to(tenant, "traffic"), "Requests") : a(to(tenant, "setup"), "First steps"),
      );
    },
    () => {},
  );
  const approval = select("staffApproval", APPROVALS, config.access.staffApproval ?? "notify", {
    disabled: who.roles.get(tenant) !== "owner",
  });
  const whole = (/** @type {HTMLInputElement} */ one) =>
    one.value === "" ? undefined : Number(one.value);
  // An empty list says that there are no such tables; an absent one says nothing.
  const perUserTables = () =>
    lines(get.perUser.value).length || house?.perUserTables ? lines(get.perUser.value) : undefined;
  const document_ = () => ({
    tenantName: get.name.value.trim(),
    fqdns: lines(get.fqdns.value),
    labels: Object.fromEntries(lines(get.labels.value).map(labelOf)),
    seq: config.seq,
    defaults: {
      cacheEnabled: get.enabled.checked,
      ttlSeconds: get.ttl.value(),
      maxEntryBytes: get.maxBytes.value(),
    },
    logging: { retentionDays: whole(get.days), storeParameterValues: get.values.checked },
    access: { staffApproval: /** @type {Contract.StaffApproval} */ (approval.value) },
    ...(get.adapter.value && {
      warehouse: {
        adapterType: /** @type {Contract.AdapterType} */ (get.adapter.value),
        port: whole(get.port),
        .../** @type {Pick<Contract.Warehouse, keyof typeof HOUSE>} */ (
          Object.fromEntries(texts.map((one) => [one.name, one.value.trim() || undefined]))
        ),
        perUserTables: perUserTables(),
        views: house?.views,
        pricing: prices.read().length || house?.pricing ? prices.read() : undefined,
      },
    }),
  });
  const comment = input("comment", "", {
    maxlength: 500,
    autocomplete: "off",
    placeholder: "Comment (optional)",
    "aria-label": "Comment",
  });
  let saved = JSON.stringify(document_());
  guard(() => mayWrite && JSON.stringify(document_()) !== saved);
  const save = async () => {
    await putConfig(tenant, document_(), comment.value);
    saved = JSON.stringify(document_());
    notify("Saved.");
    reload();
  };
  return h(
    "div",
    pageHead(
      "Configuration",
      [
        `Revision ${config.seq}, written ${f.ago(config.modifiedAt)} · `,
        a(to(tenant, "history", { kind: "config" }), "History"),
      ],
      mayWrite && [comment, button("Save", save, "primary")],
    ),
    panel(
      "Tenant",
      badge(`plan ${config.plan}`),
      h(
        "div.form",
        field("Name", get.name),
        field("Addresses that programs connect to", get.fqdns, [
          "Host names (FQDNs), one on each line, in place of the warehouse's host. ",
          a(to(tenant, "setup", { step: "first-request" }), "How to connect"),
        ]),
        field("Labels", get.labels, "name=value, one on each line"),
      ),
    ),
    panel(
      "Cache",
      null,
      h(
        "div.form",
        get.ttl.field,
        get.maxBytes.field,
        h("label.check", get.enabled, "The cache is on"),
      ),
    ),
    panel(
      "Warehouse",
      null,
      h(
        "p.pad.muted",
        "The Gateway connects to it, this service does not: requests show whether it is reached. ",
        reached,
      ),
      h(
        "div.form",
        field("Kind", get.adapter),
        field("Port", get.port),
        Object.values(HOUSE).map((label, index) =>
          field(
            label,
            texts[index],
            label === "Credential" && "The name of a secret of the Gateway, never the secret.",
          ),
        ),
        field(
          "Tables that differ per user",
          get.perUser,
          "Patterns such as hr.*, one on each line: row-level security or column masks. Rules may not share their results.",
        ),
      ),
    ),
    panel("Prices", a(to(tenant, "savings"), "Savings"), prices.element),
    panel(
      "Log",
      null,
      h(
        "div.form",
        field("Days to keep", get.days),
        h("label.check", get.values, "Store the values of parameters"),
        field(
          "When staff of the service want to read it",
          approval,
          "Only owners of the tenant change this.",
        ),
      ),
    ),
    fine("Tenant ", h("code", config.tenantId), " of account ", h("code", config.accountId)),
  );
}

/** @param {string} value */
const lines = (value) =>
  value
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

/** @param {string} line */
const labelOf = (line) => {
  const at = line.indexOf("=");
  return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
};
