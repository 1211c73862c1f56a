// Make cached results stale: by table or by rule, after a look at what that ends. Who made which
// marker.

import { call } from "../api.js";
import { nothingYet } from "../firsthour.js";
import * as f from "../format.js";
import { names } from "../forms.js";
import { can } from "../people.js";
import { readRules } from "../rulenames.js";
import { staff } from "../staff.js";
import {
  a,
  acts,
  age,
  area,
  ask,
  badge,
  beside,
  button,
  checkbox,
  empty,
  fill,
  field,
  h,
  input,
  nextOf,
  notify,
  num,
  pageHead,
  panel,
  select,
  table,
  tablePanel,
  tabs,
  text,
  to,
} from "../ui.js";

/** Markers of a page. */
const PAGE = 100;

/**
 * What making results stale would end.
 * @typedef {object} Preview
 * @property {string} [logUntil]
 * @property {string} [logNote]
 * @property {string} [note]
 * @property {string[]} ids
 * @property {Contract.PreviewTarget[]} targets
 * @property {Contract.ReportQuery[]} queries
 */

/** @type {{done: HTMLElement | null}} what was done last, until the page is left */
const last = { done: null };

/** @type {Show} */
export async function show(context) {
  const { tenant, query, signal, reload } = context;
  signal.addEventListener("abort", () => {
    last.done = null;
  });
  const isPast = query.get("show") === "past";
  const wanted = query.get("rule") ?? "";
  const kept = isPast ? "past" : "";
  const [{ rules, modifiedAt, name, link }, { markers, _links }] = await Promise.all([
    readRules(tenant),
    call("GET /tenants/{tenant}/invalidation-markers", {
      tenant,
      status: isPast ? "expired" : "active",
      targetRuleId: wanted,
      limit: PAGE,
      cursor: query.get("cursor") ?? "",
    }),
  ]);
  const next = nextOf({ _links });
  const until = age("Needed until", "expiresAt");
  const remove = (/** @type {Contract.InvalidationMarker} */ { markerId, targetRuleId }) =>
    ask({
      title: "Remove this marker?",
      body: `Results of ${name(targetRuleId)} from before the marker are fresh again, unless something else ended them.`,
      action: "Remove",
      danger: true,
      then: reload,
      run: () =>
        call("DELETE /tenants/{tenant}/invalidation-markers/{marker}", {
          tenant,
          marker: markerId,
        }),
    });
  const caching = rules
    .filter((rule) => rule.action === "cache")
    .sort((x, y) => Number(y.enabled) - Number(x.enabled));
  return h(
    "div",
    pageHead(
      "Invalidate",
      "Mark cached results as stale: the Gateway serves no older result of the rule any more. A marker records it until all older results have expired by themselves.",
    ),
    last.done,
    caching.length
      ? h("div.columns", byTable(context, name), byRule(context, caching, wanted, name))
      : nothingYet(
          tenant,
          "first-rule",
          "No rule caches results.",
          "With a rule that does, its results are made stale here, by table or by rule.",
        ),
    tabs([
      [to(tenant, "invalidate", { rule: wanted }), "Active markers", !isPast],
      [to(tenant, "invalidate", { rule: wanted, show: "past" }), "Past markers", isPast],
    ]),
    wanted &&
      h(
        "p.small",
        `Of ${name(wanted)} alone. `,
        a(to(tenant, "invalidate", { show: kept }), "Of all rules"),
      ),
    markers.length
      ? tablePanel(
          next ? "Markers" : f.count(markers.length, "marker"),
          next && a(to(tenant, "invalidate", { rule: wanted, show: kept, cursor: next }), "Older"),
          [
            {
              head: "Rule",
              cell: (row) => [
                link(row.targetRuleId),
                row.superseded && [" ", badge("a newer one counts")],
              ],
              sort: (row) => name(row.targetRuleId),
            },
            age("Made", "invalidatedAt"),
            isPast
              ? age("Ended", "expiresAt")
              : {
                  ...until,
                  cell: (row) =>
                    row.invalidatedAt < modifiedAt
                      ? beside("no more: publishing emptied the cache since")
                      : until.cell(row),
                },
            { head: "By", cell: (row) => by(link, row), class: "value" },
            { head: "Reason", cell: (row) => row.metadata.reason ?? f.NONE, class: "value" },
            !isPast && acts((row) => button("Remove", () => remove(row), "quiet small")),
          ],
          markers,
          { label: "Markers" },
        )
      : empty(
          isPast
            ? "No marker has ended."
            : "No marker is active: all results that are not expired are served.",
        ),
  );
}

/** @param {(id: string) => Child} link @param {Contract.InvalidationMarker} marker */
function by(link, { targetRuleId, createdBy, invalidatedBy: { ruleId, statement, triggeredBy } }) {
  return [
    createdBy && h("div", createdBy),
    beside(triggeredBy),
    statement && [
      h("div.sql.two", statement),
      ruleId && ruleId !== targetRuleId && h("div.small", "by ", link(ruleId)),
    ],
  ];
}

/** @param {Context} context @param {(id: string) => string} name */
function byTable(context, name) {
  const { tenant, query } = context;
  const text = area("tables", query.get("tables") ?? "", { placeholder: "sales.orders\nref.*" });
  const look = async () => {
    const tables = names(text.value);
    if (!tables.length) throw new Error("Name a table.");
    const found = await call("POST /tenants/{tenant}/invalidations/preview", {
      tenant,
      body: { tables },
    });
    if (!found.ruleIds.length) return notify("No rule can have cached results of these tables.");
    await confirmed(
      `Invalidate ${tables.join(", ")}?`,
      context,
      name,
      { ...found, ids: found.ruleIds },
      (reason, ruleIds) =>
        call("POST /tenants/{tenant}/invalidations", { tenant, body: { tables, reason, ruleIds } }),
      tables.length > 1 ? "these tables" : tables[0],
    );
  };
  return panel(
    "By table",
    null,
    h(
      "div.pad",
      field(
        "Tables",
        text,
        "Names or patterns, one on each line. You choose the rules in the preview.",
      ),
      button("Preview", look, "primary"),
    ),
  );
}

/**
 * @param {Context} context
 * @param {Contract.Rule[]} caching
 * @param {string} wanted
 * @param {(id: string) => string} name
 */
function byRule(context, caching, wanted, name) {
  const { tenant } = context;
  const rule = select(
    "rule",
    caching.map((one) => [one.id, `${one.name || one.id}${one.enabled ? "" : " (off)"}`]),
    wanted,
  );
  const look = async () => {
    const found = await call("POST /tenants/{tenant}/rules/{rule}/invalidations/preview", {
      tenant,
      rule: rule.value,
    });
    await confirmed(
      `Invalidate ${name(rule.value)}?`,
      context,
      name,
      { ...found, ids: [rule.value] },
      (reason) =>
        call("POST /tenants/{tenant}/invalidation-markers", {
          tenant,
          body: {
            markerId: `dashboard-${crypto.randomUUID()}`,
            targetRuleId: rule.value,
            metadata: { reason },
          },
        }),
    );
  };
  return panel(
    "By rule",
    null,
    h("div.pad", field("Rule", rule), button("Preview", look, "primary")),
  );
}

/**
 * @type
 *   {(title: string, context: Context, name: (id: string) => string, preview: Preview,
 *   make: (reason: string | undefined, ids: string[]) => any, what?: string) => Promise<any>}
 *   say what markers would end, and make them with a reason; of tables, `what`, on the rules that
 *   the user chooses
 */
const confirmed = async (
  title,
  { tenant, reload, isShown },
  name,
  { logUntil, logNote, note, ids, targets, queries },
  make,
  what = "",
) => {
  const opened = staff();
  const reason = input("reason", opened?.reason, {
    maxlength: 2000,
    placeholder: "Optional. It stays with the marker.",
    required: opened !== null,
  });
  // Rules that were not looked at are chosen too.
  const chosen = new Set(
    ids.filter((id) => targets.find((one) => one.ruleId === id)?.suggested !== false),
  );
  const more = ids.length - targets.length;
  const head = h("p");
  /** @param {string} ends what the chosen rules end */
  const ended = (ends) => {
    const rows = targets.filter((one) => chosen.has(one.ruleId));
    const sum = (/** @type {"entries" | "tableEntries" | "bytes" | "refillMs"} */ key) =>
      rows.reduce((all, one) => all + (one[key] ?? 0), 0);
    const [read, entries] = [sum("tableEntries"), sum("entries")];
    const own = what ? `the ${f.count(rows.length, "ticked rule")}` : "the rule";
    if (!chosen.size) return [h("strong", "No rule is ticked, so nothing ends.")];
    if (!entries)
      return [
        h(
          "strong",
          `The log shows no cached result of ${own}. ${ends} only those, if any, that the log does not have yet.`,
        ),
        " ",
        logNote,
      ];
    return [
      h(
        "strong",
        `${ends} ${f.count(entries, "cached result")} of ${own}, ${f.bytes(sum("bytes"))}${read ? `: ${f.number(read)} read${read === 1 ? "s" : ""} ${what}` : ""}.`,
      ),
      read > 0 && read < entries && " Invalidation ends all results of a rule.",
      ` The next request for each is a miss: to make all of them again takes the warehouse ${f.duration(sum("refillMs"))}. `,
      logNote,
    ];
  };
  const draw = () => fill(head, ...ended("This ends"));
  const choice = (/** @type {Contract.PreviewTarget} */ { ruleId: id }) =>
    checkbox("rules", chosen.has(id), {
      "aria-label": `Invalidate ${name(id)}`,
      onchange: () => {
        if (!chosen.delete(id)) chosen.add(id);
        draw();
      },
    });
  const tickAll = () => {
    for (const box of document.querySelectorAll("dialog [name=rules]:not(:checked)"))
      /** @type {HTMLElement} */ (box).click();
  };
  /** @param {Contract.PreviewTarget} target its results, as SQL lists them */
  const listed = ({ ruleId, entries }) => {
    const sql = queries.find((one) => one.name === `${ruleId} results`)?.sql;
    return entries && sql && can(tenant, "member")
      ? a(to(tenant, "sql", { sql }), f.number(entries))
      : f.number(entries);
  };
  draw();
  // The user has left the page meanwhile.
  if (isShown())
    await ask({
      title,
      wide: true,
      danger: true,
      action: "Invalidate",
      body: h(
        "div.stack",
        head,
        targets.length > 0 &&
          table(
            [
              what !== "" && { head: "Invalidate", hidden: true, cell: choice },
              text("Rule", "ruleId", (id) => name(id)),
              what !== "" && { ...text("Why", "why"), class: "value" },
              { ...num("Results", "entries"), cell: listed },
              num("Size", "bytes", f.bytes),
              num("To make again", "refillMs", f.duration),
              num("Usual requests in this hour", "sameHour", lately),
            ],
            targets,
            { label: "What it ends" },
          ),
        more > 0 && h("p.muted", `And ${f.count(more, "more rule")}.`),
        h(
          "p",
          logUntil && `The log is read up to ${f.when(logUntil)}. `,
          note,
          " ",
          note && button("Tick all", tickAll, "small"),
        ),
      ),
      beside: field("Reason", reason),
      missing: () => !chosen.size && "Choose at least one rule.",
      run: () => make(reason.value.trim() || undefined, [...chosen]),
      then: () => {
        reload();
        last.done = h(
          "div.callout",
          { role: "status" },
          h(
            "p",
            h("strong", `Invalidated: ${[...chosen].map((id) => name(id)).join(", ")}.`),
            " ",
            ended("That ended"),
            " Gateways hear of it within seconds. The markers are below; ",
            a(to(tenant, "traffic", { status: "MISS" }), "Requests"),
            " shows the misses that follow.",
          ),
        );
      },
    });
};

/** @param {Contract.SameHour[]} days */
function lately(days) {
  return days.length
    ? f.number(Math.round(days.reduce((sum, one) => sum + one.requests, 0) / days.length))
    : f.NONE;
}
