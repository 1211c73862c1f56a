// A replay: its progress, then what the rules would have done beside the rules that were in force.

import { call } from "../api.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { savedOnBill } from "../savings.js";
import { a, badge, beside, button, facts, failure, fill, h, num, pageHead, panel, ruleLink, table, tablePanel, text, to } from "../ui.js";
import { STATE, isUnderWay, subject } from "./drafts.js";
import { tiles } from "./overview.js";
import { status } from "./statements.js";

/** @typedef {Contract.Replay} Replay */
/** @typedef {Contract.Bounds} Bounds */

const POLL_MS = 1500;

/** @type {Texts} */
const CAVEATS = {
  "writes-past-gateway-invisible": "Writes past the Gateway are not in the log: the risk may be higher.",
  "literals-hidden": "The log hides literals of some statements, so hits have bounds.",
  "gateway-unknown": "The log does not say what the Gateway declines by itself: the bounds are wider.",
  "cache-disabled": "The configuration switches caching off: the Gateway declines every cache rule.",
  "keys-per-user": "The Gateway of this log keeps users apart, also where the rules do not vary.",
  "days-left-out": "Some days were left out.", "cold-start": "The days before the window have no data: the cache starts cold.",
  "calibration-fair": "The replay of the rules in force differs a little from the log.",
  "calibration-poor": "The replay of the rules in force differs much from the log: do not trust this.",
};

/** @type {Texts} */
const CAUSES = {
  "other-rule": "The log names another rule.",
  "not-executed": "The Gateway failed before it looked for a result.",
  "gateway-never-stale": "This Gateway never serves a stale result.",
  "stale-result": "The Gateway served no stale result.",
  "gateway-declines": "One of them declined to use the cache.",
  "literals-hidden": "The log hides the literals of the statement.",
  "cached-before": "The Gateway's result is older than the window.",
  "differed-before": "An earlier request for the same result differs.",
  "same-millisecond": "Another request came in the same millisecond.",
  "other-cache-state": "The cache held something else.",
  unexplained: "For another reason.",
};

/** @type {Show} */
export async function show(context) {
  const { tenant, params: { replay } } = context;
  const body = h("div");
  const poll = async () => {
    try {
      const run = await call("GET /tenants/{tenant}/replays/{replayId}", { tenant, replayId: replay });
      if (context.signal.aborted) return;
      fill(body, page(context, run));
      if (isUnderWay(run)) {
        const timer = setTimeout(poll, POLL_MS);
        context.onLeave(() => clearTimeout(timer));
      }
    } catch (error) {
      fill(body, failure(error, poll));
    }
  };
  await poll();
  return body;
}

/** @param {Context} context @param {Replay} run */
function page(context, run) {
  const { tenant } = context;
  const isOpen = isUnderWay(run);
  const cancel = async () => {
    await call("DELETE /tenants/{tenant}/replays/{replayId}", { tenant, replayId: run.replayId });
    context.reload();
  };
  const head = pageHead(h("div.row", h("h1", "Replay"), badge(run.state, STATE[run.state])),
    [a(to(tenant, "drafts"), "Drafts and replay"), ` · ${f.dayShort(run.window.from)} – ${f.dayShort(run.window.to)} · `,
      run.subject.draftId ? a(to(tenant, `drafts/${run.subject.draftId}`), "the draft") : subject(run.subject)],
    can(tenant, "write") && (isOpen ? button("Cancel", cancel) : run.subject.draftId && h("a.button.primary", { href: to(tenant, `drafts/${run.subject.draftId}`, { review: 1 }) }, "Review and publish")));
  if (isOpen) {
    return [head, panel(run.state === "queued" ? "Waiting for its turn" : "Running", null, h("div.pad",
      h("progress.progress", { max: 1, value: run.progress, "aria-label": "Progress" })))];
  }
  if (run.state !== "done") return [head, panel("No result", null, h("p.pad", run.error ?? "It was cancelled."))];
  return [head, ...result(tenant, run)];
}

/** @param {Contract.ReplayCounts} counts */
const atRisk = ({ risk: { low, high } }) => f.range({ low, high }, f.number);

/** @param {Bounds} bounds */
const middle = ({ low, likely, high }) => likely ?? (low + high) / 2;

/** @param {string} tenant @param {Replay} run */
function result(tenant, run) {
  const { calibration } = run;
  if (!calibration) return [];
  return [
    ...outcome(run),
    panel("By rule", beside("“was”: under the rules in force"), byRule(tenant, run)),
    h("div.columns", moved(tenant, run), publishCost(run)),
    calibration.causes.length && panel("Where the log and the replay of its own rules differ", null, causes(calibration)),
    panel("What to keep in mind", null, h("div.pad.prose", h("ul",
      (run.caveats ?? []).map((code) => h("li", CAVEATS[code] ?? code)),
      run.window.daysLeftOut?.map((day) => h("li", `${f.periodName(day)} was left out.`))))),
  ];
}

/** @param {Replay} run its figures, and what speaks against the rules */
export function outcome(run) {
  const { total, against, calibration } = run;
  if (!total || !against || !calibration) return [];
  const [now, then] = [total, against.total];
  const rate = (/** @type {Contract.ReplayCounts} */ one) => middle(one.hits) / (middle(one.hits) + one.misses || 1);
  const gain = middle(now.savedMs) - middle(then.savedMs);
  return [
    (gain < 0 || middle(now.hits) < middle(then.hits)) && h("div.callout.bad", { role: "alert" }, "These rules are likely to save less than the rules in force."),
    calibration.grade === "poor" && h("div.callout.bad", { role: "alert" }, CAVEATS["calibration-poor"]),
    tiles([
      ["Requests", f.compact(now.requests)], ["Hits", f.compact(middle(now.hits)), f.difference(Math.round(middle(now.hits) - middle(then.hits)), f.compact)],
      ["Hit rate of cache rules", f.percent(rate(now)), `was ${f.percent(rate(then))}`],
      ["Warehouse time saved", f.duration(middle(now.savedMs)), f.difference(Math.round(gain), f.duration)],
      ...(run.billed ? [/** @type {[string, string]} */ (["Saved on the bill", savedOnBill(run.billed.gain)])] : []),
      ["Hits at risk", atRisk(now), `was ${atRisk(then)}`],
      ["Agreement with the log", f.percent(calibration.share), calibration.grade],
    ]),
  ];
}

/** @param {string} tenant @param {Replay} run */
function byRule(tenant, run) {
  const before = new Map((run.against?.rules ?? []).map((one) => [one.ruleId, one]));
  const was = (/** @type {Contract.ReplayRuleCounts} */ row, /** @type {(one: Contract.ReplayRuleCounts) => string} */ show) => {
    const old = before.get(row.ruleId);
    return old && show(old) === show(row) ? null : beside(` was ${old ? show(old) : f.NONE}`);
  };
  return table([
    text("Rule", "ruleId", (id) => ruleLink(tenant, id)),
    { head: "Requests", number: true, cell: (row) => [f.number(row.requests), was(row, (one) => f.number(one.requests))], sort: (row) => row.requests },
    { head: "Hits", number: true, cell: (row) => [f.range(row.hits, f.number), was(row, (one) => f.number(Math.round(middle(one.hits))))], sort: (row) => middle(row.hits) },
    { head: "Misses", number: true, cell: (row) => [f.number(row.misses), was(row, (one) => f.number(one.misses))], sort: (row) => row.misses },
    { head: "Saved", number: true, cell: (row) => [f.range(row.savedMs, f.duration), was(row, (one) => f.duration(middle(one.savedMs)))], sort: (row) => middle(row.savedMs) },
    { head: "Hits at risk", number: true, cell: (row) => atRisk(row), sort: (row) => row.risk.high },
  ], run.rules ?? [], { label: "By rule", sorted: 4 });
}

/** @param {string} tenant @param {Replay} run */
function moved(tenant, run) {
  return tablePanel("Requests that end differently", null, [
    text("Was", "from", status), text("Becomes", "to", status),
    num("Requests", "count"),
    { head: "For instance", cell: (row) => row.examples.slice(0, 1).map((/** @type {string} */ id) => a(to(tenant, "explain", { logId: id }), id.slice(0, 8))) },
  ], run.moved ?? [], { limit: 10, sorted: 2, none: "Every request ends as before." });
}

/** @param {Contract.Calibration} calibration */
function causes(calibration) {
  return table([
    text("Why", "why", (why) => CAUSES[why] ?? why),
    text("Log", "logged", status), text("Replay", "replayed", status),
    num("Requests", "count"),
  ], calibration.causes, { label: "Causes of differences", limit: 10, sorted: 3 });
}

/** @param {Replay} run */
export function publishCost(run) {
  const cost = run.publishCost;
  if (!cost) return null;
  const at = (/** @type {Contract.HourCost} */ one) => `${f.hour(one.hour)} UTC: ${f.number(one.extraMisses)} extra misses, ${f.duration(one.extraMs)}`;
  return panel("What publishing costs", null, facts([["Now", at(cost.now)], ["Cheapest hour", at(cost.best)]], ".pad"),
  h("p.pad.muted.small", "Every publish empties the cache. These results would have been asked for again."));
}
