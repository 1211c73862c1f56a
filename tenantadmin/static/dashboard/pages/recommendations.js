// What the miner recommends: look at each, draft, accept or dismiss it; what it did once accepted.

import { ApiError, call } from "../api.js";
import { fill, h } from "../dom.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { go, to } from "../router.js";
import { savedOnBill } from "../savings.js";
import { a, ask, badge, button, empty, failure, field, input, notify, panel, skeleton, table, tabs } from "../ui.js";
import { commentInput } from "./rules-edit.js";

/** @typedef {Contract.Recommendation} Recommendation */

/** @type {Record<string, string>} */
const STATE = { open: "info", drafted: "info", accepted: "good", dismissed: "", superseded: "warn" };
/** @type {Record<string, string>} what a kind is good for, as staff pages say it */
const PURPOSE = { "leak-fix": "privacy", invalidator: "fresh results", split: "fresh results", swr: "no waiting", bypass: "less stored", remove: "simpler rules", "let-it-sleep": "saves money", "auto-suspend": "saves money" };
const POLL_MS = 2000;

/** @type {import("../router.js").Show} */
export async function show(context) {
  const { tenant, query } = context;
  const { recommendations, mining } = await call("GET /tenants/{tenant}/recommendations", { tenant });
  const isPast = query.get("show") === "past";
  const open = recommendations.filter((one) => one.state === "open" || one.state === "drafted");
  const shown = isPast ? recommendations.filter((one) => !open.includes(one)) : open;
  const mine = async () => {
    await call("POST /tenants/{tenant}/recommendations", { tenant });
    notify("The log is being read. This takes some seconds.");
    setTimeout(context.reload, POLL_MS);
  };
  const isMining = mining !== null && (mining.state === "queued" || mining.state === "running");
  if (isMining) {
    const timer = setTimeout(context.reload, POLL_MS);
    context.onLeave(() => clearTimeout(timer));
  }
  const report = mining?.report;
  return h("div", null,
    h("header", { class: "page-head" }, h("div", null, h("h1", null, "Recommendations"),
      h("p", { class: "muted" }, mining ? `Past requests were searched ${f.ago(mining.finishedAt ?? mining.requestedAt)}.` : "Past requests were not searched yet.")),
    can(tenant, "write") && (isMining ? badge(`looking, ${f.percent(mining.progress)}`, "info") : button("Look now", mine))),
    tabs([[to(tenant, "recommendations"), `Open (${open.length})`, !isPast], [to(tenant, "recommendations", { show: "past" }), `Decided (${recommendations.length - open.length})`, isPast]]),
    shown.length ? shown.map((one) => card(context, one)) : empty(isPast ? "Nothing has been decided yet." : isMining ? "The log is being read." : "Nothing is recommended now."),
    !isPast && report?.notProposed.length ? panel("What was left alone, and why", null, table([
      { head: "Why", cell: (row) => row.why, class: "wide-cell" },
      { head: "Statements", number: true, cell: (row) => f.number(row.statements), sort: (row) => row.statements },
      { head: "Requests", number: true, cell: (row) => f.number(row.requests), sort: (row) => row.requests },
      { head: "In the warehouse", number: true, cell: (row) => f.duration(row.warehouseMs), sort: (row) => row.warehouseMs },
    ], report.notProposed, { label: "What was left alone", sorted: 3 })) : null);
}

/** @param {Contract.SignedBounds} bounds @param {(value: number) => string} show */
const range = ({ low, likely, high }, show) => {
  const bound = (/** @type {number} */ value) => (value ? show(value) : "0");
  return low === high ? show(low) : `≈ ${bound(likely ?? low)} (${bound(low)} to ${bound(high)})`;
};

/**
 * @param {import("../router.js").Context} context
 * @param {Recommendation} one
 */
function card(context, one) {
  const { tenant } = context;
  const { gain } = one.predicted;
  return panel(one.title, [h("span", { title: one.kind }, badge(PURPOSE[one.kind] ?? "saves time", one.kind === "leak-fix" ? "bad" : "")), badge(one.state, STATE[one.state]), one.caveats.map((code) => badge(code.replaceAll("-", " "), "warn"))],
    h("div", { class: "pad stack" },
      h("ul", { class: "prose" }, one.why.map((line) => h("li", null, line))),
      h("dl", { class: "facts" }, h("dt", null, "Predicted"), h("dd", null, gain.billedMs && `Saved on the bill: ${savedOnBill({ ...gain, billedMs: gain.billedMs })}; `, `warehouse time saved: ${range(gain.savedMs, f.durationChange)}; hits: ${range(gain.hits, f.change)}; from ${f.periodName(one.basedOn.window.from)} to ${f.periodName(one.basedOn.window.to)}`),
        gain.risk.high !== 0 && [h("dt", null, "Hits at risk"), h("dd", null, gain.risk.low === gain.risk.high ? f.number(gain.risk.low) : `${f.number(gain.risk.low)} to ${f.number(gain.risk.high)}`)],
        one.decidedAt && [h("dt", null, "Decided"), h("dd", null, `${one.decidedBy ?? ""} ${f.ago(one.decidedAt)}${one.reason ? `: ${one.reason}` : ""}`)]),
      one.alternatives.length > 0 && otherWays(context, one),
      h("details", null, h("summary", { class: "muted small" }, "The rules, and the evidence"),
        h("pre", { class: "code", tabindex: 0 }, JSON.stringify(one.rules, null, 2)),
        one.evidence.map((piece) => h("div", null, h("div", { class: "row" }, h("h3", null, piece.name), can(tenant, "member") && a(to(tenant, "sql", { sql: piece.sql }), "Run it")), h("pre", { class: "code", tabindex: 0 }, piece.sql)))),
      one.state === "accepted" ? effect(tenant, one) : can(tenant, "write") && acts(context, one)));
}

/**
 * The recommended change beside its alternatives: what each was predicted to do.
 * @param {import("../router.js").Context} context
 * @param {Recommendation} one
 */
function otherWays(context, one) {
  const mayChoose = can(context.tenant, "write") && (one.state === "open" || one.state === "drafted");
  return h("div", null, h("h3", null, "Compared with other ways"), table([
    { head: "Change", class: "wide-cell", cell: (way) => [way === one ? h("strong", null, way.title) : way.title, h("div", { class: "muted small" }, way.why.at(-1) ?? "")] },
    { head: "On the bill", number: true, cell: ({ predicted: { gain } }) => gain.billedMs && savedOnBill({ ...gain, billedMs: gain.billedMs }) },
    { head: "Saved", number: true, cell: (way) => range(way.predicted.gain.savedMs, f.durationChange) },
    { head: "Hits", number: true, cell: (way) => range(way.predicted.gain.hits, f.change) },
    { head: "Choose", hidden: true, cell: (way) => mayChoose && way !== one && way.patch.length > 0 && h("div", { class: "row" }, button("Accept", () => accept(context, one, way), "quiet"), one.state === "open" && button("Make a draft", () => draft(context, one, way), "quiet")) },
  ], /** @type {Contract.AdviceChange[]} */ ([one, ...one.alternatives]), { label: "Compared with other ways" }));
}

/**
 * @param {import("../router.js").Context} context
 * @param {Recommendation} one
 * @param {Contract.AdviceChange} way the recommended change or an alternative
 */
const choice = ({ tenant }, one, way) => ({ tenant, recommendationId: one.recommendationId, ...(way.variant && { variant: way.variant }) });

/**
 * @param {import("../router.js").Context} context
 * @param {Recommendation} one
 * @param {Contract.AdviceChange} way
 */
async function accept(context, one, way) {
  const comment = commentInput();
  const done = await ask({ title: "Publish this now?", action: "Accept and publish",
    body: h("div", null, h("p", null, way.title, ". The Gateway starts with an empty cache under the new rules."), field("Comment", comment, "Why the rules change. The history keeps it.")),
    run: () => call("POST /tenants/{tenant}/recommendations/{recommendationId}/accept", { ...choice(context, one, way), comment: comment.value }) });
  if (done) context.reload();
}

/**
 * @param {import("../router.js").Context} context
 * @param {Recommendation} one
 * @param {Contract.AdviceChange} way
 */
async function draft(context, one, way) {
  const made = await call("POST /tenants/{tenant}/recommendations/{recommendationId}/draft", choice(context, one, way));
  go(`/t/${context.tenant}/drafts/${made.draftId}`);
}

/**
 * @param {import("../router.js").Context} context
 * @param {Recommendation} one
 */
function acts(context, one) {
  const { tenant, reload } = context;
  const path = { tenant, recommendationId: one.recommendationId };
  const reason = input("reason", "", { maxlength: 500 });
  const dismiss = async () => {
    const done = await ask({ title: "Dismiss it?", action: "Dismiss", body: field("Why", reason, "It comes back only if it would save twice as much."),
      run: () => call("POST /tenants/{tenant}/recommendations/{recommendationId}/dismiss", { ...path, body: { reason: reason.value.trim() } }) });
    if (done) reload();
  };
  const reopen = async () => {
    await call("POST /tenants/{tenant}/recommendations/{recommendationId}/reopen", path);
    reload();
  };
  if (one.state === "dismissed") return h("div", { class: "row" }, button("Open again", reopen));
  if (one.state === "superseded") return null;
  return h("div", { class: "row" }, one.patch.length > 0 && button("Accept", () => accept(context, one, one), "primary"),
    one.patch.length > 0 && (one.draftId ? h("a", { class: "button", href: to(tenant, `drafts/${one.draftId}`) }, "Its draft") : button("Make a draft", () => draft(context, one, one))), button("Dismiss", dismiss, "quiet"));
}

/**
 * What it did, measured against a replay of the rules without it.
 * @param {string} tenant
 * @param {Recommendation} one
 */
function effect(tenant, one) {
  const box = h("div", null, skeleton(1));
  call("GET /tenants/{tenant}/recommendations/{recommendationId}/effect", { tenant, recommendationId: one.recommendationId }).then((found) => {
    const { hits, savedMs, billedMs, period } = found;
    if (!period || !(hits || billedMs)) return fill(box, h("p", { class: "muted" }, "Its effect is measured after three whole days."));
    const line = (/** @type {string} */ name, /** @type {Contract.EffectMeasure} */ it, /** @type {(value: number) => string} */ show) => [h("dt", null, name),
      h("dd", null, h("strong", null, `${it.measured < 0 ? "−" : "+"}${show(Math.abs(it.measured))}`), ` (predicted ${show(it.predicted)})`, it.inconclusive && [" ", badge("inconclusive", "warn")])];
    fill(box, h("dl", { class: "facts" }, h("dt", null, "Measured"), h("dd", null, `${f.number(period.days)} days from ${f.periodName(period.from)}`), hits && line("Hits", hits, f.number), savedMs && line("Time saved", savedMs, f.duration), billedMs && line("Time on the bill", billedMs, f.duration)));
  }, (error) => fill(box, error instanceof ApiError && error.status === 404 ? h("p", { class: "muted" }, "Nothing is measured yet.") : failure(error)));
  return box;
}
