// Make cached results stale: by table or by rule, after a look at what that ends. Who made which marker.

import { call } from "../api.js";
import { nothingYet } from "../firsthour.js";
import * as f from "../format.js";
import { names } from "../forms.js";
import { a, age, area, ask, badge, beside, button, empty, field, fine, h, input, nextOf, notify, num, pageHead, panel, ruleLink, select, table, tablePanel, tabs, text, to } from "../ui.js";

/** Markers of a page. */
const PAGE = 100;

/** @typedef {{at: string, ids: string[], targets: Contract.PreviewTarget[]}} Preview */

/** @type {Show} */
export async function show({ tenant, query, reload }) {
  const isPast = query.get("show") === "past";
  const wanted = query.get("rule") ?? "";
  const kept = isPast ? "past" : "";
  const [{ rules }, { markers, _links }] = await Promise.all([
    call("GET /config/tenants/{tenant}/rules", { tenant }), call("GET /tenants/{tenant}/invalidation-markers", { tenant, status: isPast ? "expired" : "active", targetRuleId: wanted, limit: PAGE, cursor: query.get("cursor") ?? "" })]);
  const next = nextOf({ _links });
  const caching = rules.filter((rule) => rule.action === "cache");
  const name = (/** @type {string} */ id) => rules.find((rule) => rule.id === id)?.name || id;
  return h("div",
    pageHead("Invalidate", "The Gateway serves no result that is older than a marker on its rule."),
    caching.length ? h("div.columns", byTable(tenant, name, reload), byRule(tenant, caching, wanted, name, reload))
      : nothingYet(tenant, "first-rule", "No rule caches results.", "With a rule that does, its results are made stale here, by table or by rule."),
    tabs([[to(tenant, "invalidate", { rule: wanted }), "Active markers", !isPast], [to(tenant, "invalidate", { rule: wanted, show: "past" }), "Past markers", isPast]]),
    wanted && h("p.small", `Of ${name(wanted)} alone. `, a(to(tenant, "invalidate", { show: kept }), "Of all rules")),
    markers.length ? tablePanel(next ? "Markers" : f.count(markers.length, "marker"), next && a(to(tenant, "invalidate", { rule: wanted, show: kept, cursor: next }), "Older"), [
      { head: "Rule", cell: (row) => [ruleLink(tenant, row.targetRuleId, name(row.targetRuleId)), row.superseded && [" ", badge("a newer one counts")]], sort: (row) => name(row.targetRuleId) },
      age("Made", "invalidatedAt"),
      age(isPast ? "Ended" : "Ends", "expiresAt"),
      { head: "By", cell: (row) => by(tenant, row), class: "value" },
      { head: "Reason", cell: (row) => row.metadata.reason ?? f.NONE, class: "value" },
    ], markers, { label: "Markers" }) : empty(isPast ? "No marker has ended." : "No marker is active: all results that are not expired are served."));
}

/** @param {string} tenant @param {Contract.InvalidationMarker} marker */
function by(tenant, { targetRuleId, createdBy, invalidatedBy: { ruleId, statement, triggeredBy } }) {
  return [createdBy && h("div", createdBy), beside(triggeredBy), statement && [h("div.sql.two", statement), ruleId && ruleId !== targetRuleId && h("div.small", "by ", ruleLink(tenant, ruleId))]];
}

/** @param {string} tenant @param {(id: string) => string} name @param {() => void} reload */
function byTable(tenant, name, reload) {
  const text = area("tables", "", { placeholder: "sales.orders\nref.*" });
  const look = async () => {
    const tables = names(text.value);
    if (!tables.length) throw new Error("Name a table.");
    const found = await call("POST /tenants/{tenant}/invalidations/preview", { tenant, body: { tables } });
    if (!found.ruleIds.length) {
      notify("No rule can have cached results of these tables.");
      return;
    }
    await confirmed(`Invalidate ${tables.join(", ")}?`, name, reload, { at: found.at, ids: found.ruleIds, targets: found.targets },
      (reason) => call("POST /tenants/{tenant}/invalidations", { tenant, body: { tables, reason } }));
  };
  return panel("By table", null, h("div.pad", field("Tables", text, "Names or patterns, one on each line. Every rule that can have cached their results gets a marker."), button("Preview", look, "primary")));
}

/** @param {string} tenant @param {Contract.Rule[]} caching @param {string} wanted @param {(id: string) => string} name @param {() => void} reload */
function byRule(tenant, caching, wanted, name, reload) {
  const rule = select("rule", caching.map((one) => [one.id, `${one.name || one.id}${one.enabled ? "" : " (off)"}`]), wanted);
  const look = async () => {
    const { at, targets } = await call("POST /tenants/{tenant}/rules/{rule}/invalidations/preview", { tenant, rule: rule.value });
    await confirmed(`Invalidate ${name(rule.value)}?`, name, reload, { at, ids: [rule.value], targets }, (reason) => call("POST /tenants/{tenant}/invalidation-markers", {
      tenant, body: { markerId: `dashboard-${crypto.randomUUID()}`, targetRuleId: rule.value, metadata: { reason } } }));
  };
  return panel("By rule", null, h("div.pad", field("Rule", rule, "Rules that cache."), button("Preview", look, "primary")));
}

/**
 * Show what markers would end, and make them with a reason.
 * @param {string} title
 * @param {(id: string) => string} name
 * @param {() => void} reload
 * @param {Preview} preview
 * @param {(reason: string | undefined) => any} make
 */
async function confirmed(title, name, reload, { at, ids, targets }, make) {
  const reason = input("reason", "", { maxlength: 2000 });
  const more = ids.length - targets.length;
  await ask({
    title, wide: true, danger: true, action: "Invalidate",
    body: h("div.stack", targets.length > 0 && table([
      text("Rule", "ruleId", name),
      num("Results", "entries"),
      num("Size", "bytes", f.bytes),
      num("To make again", "refillMs", f.duration),
      num("Requests in this hour", "sameHour", lately),
    ], targets, { label: "What it ends" }), more > 0 && h("p.muted", `And ${f.count(more, "more rule")}.`),
    fine(`By the log, ${f.when(at)}. “To make again” is the time in the warehouse. “Requests in this hour” is the mean of the last same weekdays.`),
    field("Reason", reason, "Optional. It stays with the marker.")),
    run: () => make(reason.value.trim() || undefined),
    then: () => {
      notify(`Invalidated: ${f.count(ids.length, "rule")}.`);
      reload();
    },
  });
}

/** @param {Contract.SameHour[]} days */
function lately(days) {
  return days.length ? f.number(Math.round(days.reduce((sum, one) => sum + one.requests, 0) / days.length)) : f.NONE;
}
