// The configuration of a tenant, and its FQDNs.

import { ApiError, call, configOf, weeksOf } from "../api.js";
import { fieldDiff } from "../diff.js";
import * as f from "../format.js";
import { SIZES, TIMES, names, withUnit } from "../forms.js";
import { can, person, putConfig } from "../people.js";
import { priceFields } from "../prices.js";
import { staff } from "../staff.js";
import {
  a,
  area,
  ask,
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
    views: area(
      "views",
      Object.entries(house?.views ?? {})
        .map(([view, tables]) => `${view} = ${tables.join(", ")}`)
        .join("\n"),
      off,
    ),
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
  const views = () =>
    lines(get.views.value).length || house?.views
      ? Object.fromEntries(
          lines(get.views.value)
            .map(labelOf)
            .map(([view, of]) => [view, names(of)]),
        )
      : undefined;
  const document_ = (seq = config.seq) => ({
    tenantName: get.name.value.trim(),
    fqdns: lines(get.fqdns.value),
    labels: Object.fromEntries(lines(get.labels.value).map(labelOf)),
    seq,
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
        views: views(),
        pricing: prices.read().length || house?.pricing ? prices.read() : undefined,
      },
    }),
  });
  const comment = input("comment", staff()?.reason, {
    maxlength: 500,
    autocomplete: "off",
    placeholder: "Comment (optional)",
    "aria-label": "Comment",
  });
  let saved = JSON.stringify(document_());
  guard(() => mayWrite && JSON.stringify(document_()) !== saved);
  /** @param {number} [seq] the revision that it replaces */
  const write = async (seq) => {
    await putConfig(tenant, document_(seq), comment.value);
    saved = JSON.stringify(document_());
  };
  const done = () => {
    notify("Saved.");
    reload();
  };
  const save = async () => {
    try {
      await write();
    } catch (error) {
      // A name or FQDN of another tenant is a conflict too.
      if (error instanceof ApiError && error.code === "concurrent_change") return saveOver();
      throw error;
    }
    done();
  };
  const saveOver = async () => {
    const { seq } = await configOf(tenant);
    const theirs = await call("GET /config/tenants/{tenant}/config/history/diff", {
      tenant,
      from: config.seq,
      to: seq,
    });
    await ask({
      title: `Another user saved revision ${seq} first`,
      wide: true,
      danger: true,
      action: `Save over revision ${seq}`,
      body: [
        h("h3", "What they changed"),
        fieldDiff(theirs.inWords),
        h("h3", "What you changed"),
        fieldDiff(differing(JSON.parse(saved), JSON.parse(JSON.stringify(document_())))),
        h("p", "Saving makes the configuration what your form says, without what they changed."),
      ],
      run: () => write(seq),
      then: done,
    });
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
          "Views",
          get.views,
          "view = table, table, one on each line. Results of a view are stale and personal with the tables that it reads.",
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

/** @type {(before: any, after: any) => Contract.ChangeInWords[]} the values that differ */
function differing(before, after) {
  const [old, now] = [valuesOf(before), valuesOf(after)];
  return Object.keys({ ...old, ...now })
    .filter((name) => old[name] !== now[name])
    .map((name) => ({ field: name, from: old[name] ?? f.NONE, to: now[name] ?? f.NONE }));
}

/** @type {(value: any, path?: string) => Texts} by their paths, such as `defaults.ttlSeconds` */
const valuesOf = (value, path = "") =>
  value && typeof value === "object" && !Array.isArray(value)
    ? Object.entries(value).reduce(
        (all, [name, one]) => ({ ...all, ...valuesOf(one, path ? `${path}.${name}` : name) }),
        {},
      )
    : { [path]: JSON.stringify(value) };

/** @param {string} line */
const labelOf = (line) => {
  const at = line.indexOf("=");
  return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
};
