// One recommendation: why, what is predicted, other ways; draft, accept or dismiss it; what it did.

import { call, hasStatus, rulesOf } from "./api.js";
import { ruleDiff } from "./diff.js";
import * as f from "./format.js";
import { figureTiles } from "./pages/replay.js";
import { statements } from "./pages/reports.js";
import { can } from "./people.js";
import { askToPublish } from "./publish.js";
import { validate } from "./ruleset.js";
import {
  ask,
  badge,
  button,
  code,
  copyable,
  facts,
  failure,
  field,
  fill,
  fine,
  h,
  input,
  num,
  revisionLink,
  skeleton,
  table,
  text,
  to,
} from "./ui.js";

/** @typedef {Contract.Recommendation} Recommendation */

/** The states in which one can be decided. */
export const OPEN = new Set(["open", "drafted"]);

/** @param {Context} context @param {Recommendation} one all of it, below its row */
export function details(context, one) {
  const { tenant } = context;
  return h(
    "div.stack",
    h(
      "ul.prose",
      one.why.map((line) => h("li", line)),
    ),
    one.caveats.includes("row-level-security-invisible") &&
      h(
        "div.callout.warn",
        "No statement tells whether the warehouse shows each user other rows. If it does, choose the change per user.",
      ),
    one.state !== "accepted" && predicted(one),
    one.summary.statement && copyable(one.summary.statement, "Statement for the platform"),
    one.decidedAt &&
      facts([
        [
          "Decided",
          [
            `${one.decidedBy ?? ""}, ${f.ago(one.decidedAt)}${one.reason ? `: ${one.reason}` : ""}`,
            one.until && ` (until ${f.periodName(one.until)})`,
            one.acceptedSeq && [", as ", revisionLink(tenant, one.acceptedSeq)],
          ],
        ],
      ]),
    one.state === "superseded" && h("p", one.reason),
    one.alternatives.length > 0 && otherWays(context, one),
    h(
      "details",
      h("summary.muted.small", "The rules, and the evidence"),
      code(one.rules),
      one.evidence.map((piece) => [rowsOf(piece), statements(tenant, [piece])]),
    ),
    one.state === "accepted" ? effect(tenant, one) : can(tenant, "write") && choices(context, one),
  );
}

/** @param {Contract.EvidenceRows} piece what its statement gave when the change was recommended */
const rowsOf = ({ name, rows }) =>
  table(
    Object.keys(rows[0] ?? {}).map((key) =>
      typeof rows[0][key] === "number"
        ? num(headOf(key), key, key.endsWith("Ms") ? f.duration : f.number)
        : { ...text(headOf(key), key, shown), class: "value" },
    ),
    rows,
    { label: `Rows: ${name}`, none: "No rows." },
  );

/** @param {string} key a column of the log, or a number of a statement, such as `warehouseMs` */
function headOf(key) {
  if (key === "standardizedSql") return "Statement";
  const words = key.replace(/Ms$/, "").replace(/[A-Z]/g, " $&").toLowerCase();
  return words[0].toUpperCase() + words.slice(1);
}

/** @param {any} value */
const shown = (value) =>
  value === null ? f.NONE : typeof value === "string" ? value : JSON.stringify(value);

/**
 * @param {Recommendation} one
 * @param {Contract.AdviceChange} [way] the recommended change or an alternative
 */
const predicted = ({ basedOn: { window, seq }, ...one }, way = one) =>
  h(
    "div",
    figureTiles(way.figures),
    fine(
      `Predicted by a replay of ${f.periodName(window.from)} to ${f.periodName(window.to)} with the rules of revision ${seq}.`,
    ),
  );

/** @type {(one: Recommendation, way: Contract.AdviceChange) => boolean} */
export const mayTake = (one, way) => !one.outdated && way.patch.length > 0;

/**
 * @type {(context: Context, one: Recommendation, way: Contract.AdviceChange) => Child} the buttons
 *   that take a change, if it is one of rules
 */
const takes = (context, one, way) =>
  mayTake(one, way) &&
  h(
    "div.row",
    button("Accept", () => accept(context, one, way), way === one ? "primary" : ""),
    one.state === "open" && button("Make a draft", () => draft(context, one, way)),
  );

/**
 * @param {Context} context
 * @param {Recommendation} one the recommended change beside its alternatives
 */
function otherWays(context, one) {
  const mayChoose = can(context.tenant, "write") && OPEN.has(one.state);
  return h(
    "div.ways",
    h("h3", "Compared with other ways"),
    table(
      [
        {
          head: "Change",
          class: "wide-cell",
          cell: (way) => [
            way === one ? h("strong", way.title) : way.title,
            h("div.muted.small", way.why.at(-1) ?? ""),
          ],
        },
        ...(one.figures ?? []).map(({ name: head }, index) => ({
          head,
          number: true,
          cell: (/** @type {Contract.AdviceChange} */ way) => way.figures?.[index]?.text,
        })),
        { head: "Choose", hidden: true, cell: (way) => mayChoose && takes(context, one, way) },
      ],
      /** @type {Contract.AdviceChange[]} */ ([one, ...one.alternatives]),
      { label: "Compared with other ways" },
    ),
  );
}

/**
 * @param {Context} context
 * @param {Recommendation} one
 * @param {Contract.AdviceChange} way the recommended change or an alternative
 */
const choice = ({ tenant }, one, way) => ({
  tenant,
  recommendationId: one.recommendationId,
  ...(way.variant && { variant: way.variant }),
});

/**
 * @param {Context} context
 * @param {Recommendation} one
 * @param {Contract.AdviceChange} [way]
 */
export async function accept(context, one, way = one) {
  const { tenant } = context;
  const { rules } = await rulesOf(tenant);
  const { changed = [] } = await validate(way.rules, rules);
  const having = (/** @type {string} */ op) => way.patch.filter((one) => one.op === op);
  await askToPublish({
    context,
    title: `Publish: ${way.title}?`,
    action: "Accept and publish",
    lint: null,
    difference: ruleDiff({
      added: having("insert").flatMap(({ rule }) => rule ?? []),
      removed: rules.filter(({ id }) => having("remove").some((one) => one.ruleId === id)),
      changed,
      reordered: having("move").length > 0,
    }),
    isReplayOf: ({ replayId }) => way === one && replayId === one.replayId,
    prediction: predicted(one, way),
    run: (comment) =>
      call("POST /tenants/{tenant}/recommendations/{recommendationId}/accept", {
        ...choice(context, one, way),
        comment,
      }),
    then: () => context.go(to(tenant, "recommendations", { show: "ledger" })),
  });
}

/** @param {Context} context @param {Recommendation} one @param {Contract.AdviceChange} way */
async function draft(context, one, way) {
  const made = await call(
    "POST /tenants/{tenant}/recommendations/{recommendationId}/draft",
    choice(context, one, way),
  );
  context.go(to(context.tenant, `drafts/${made.draftId}`));
}

/** @param {Context} context @param {Recommendation} one */
function choices(context, one) {
  const { tenant, reload } = context;
  const path = { tenant, recommendationId: one.recommendationId };
  const reason = input("reason", "", { maxlength: 500 });
  const until = input("until", "", { type: "date", min: f.today() });
  const dismiss = () =>
    ask({
      title: "Dismiss it?",
      action: "Dismiss",
      body: [
        field("Why", reason),
        field(
          "Until",
          until,
          "Optional. It comes back on this day, or when it would save twice as much.",
        ),
      ],
      then: reload,
      run: () =>
        call("POST /tenants/{tenant}/recommendations/{recommendationId}/dismiss", {
          ...path,
          body: { reason: reason.value.trim(), ...(until.value && { until: until.value }) },
        }),
    });
  const reopen = async () => {
    await call("POST /tenants/{tenant}/recommendations/{recommendationId}/reopen", path);
    reload();
  };
  if (one.state === "dismissed") return h("div.row", button("Open again", reopen));
  if (one.state === "superseded") return null;
  return h(
    "div.row",
    one.kind === "auto-suspend" && h("a.button", { href: to(tenant, "config") }, "Configuration"),
    !one.alternatives.length && takes(context, one, one),
    one.draftId && h("a.button", { href: to(tenant, `drafts/${one.draftId}`) }, "Its draft"),
    button("Dismiss", dismiss, "quiet"),
  );
}

/** @param {number} ms */
const saved = (ms) => f.saving(f.duration(ms));

/**
 * @param {string} tenant
 * @param {Recommendation} one what it did, measured against a replay of the rules without it
 */
function effect(tenant, one) {
  const [box, later, never] = [
    h("div", skeleton(1)),
    h("p.muted", "Its effect is measured after three whole days."),
    h(
      "p.muted",
      "The rules were written again before three whole days had passed, so there is nothing to measure.",
    ),
  ];
  call("GET /tenants/{tenant}/recommendations/{recommendationId}/effect", {
    tenant,
    recommendationId: one.recommendationId,
  }).then(
    (found) => {
      const { hits, savedMs, billedMs, period, state, closedBy } = found;
      if (!period || !(hits || billedMs))
        return fill(box, predicted(one), state === "closed" ? never : later);
      const line = (
        /** @type {Contract.EffectMeasure} */ it,
        /** @type {(value: number) => string} */ show,
      ) => [
        h("strong", show(it.measured)),
        ` (predicted for these days: ${show(it.predicted)}`,
        it.beforeAfter !== null &&
          `; before and after, not adjusted for traffic: ${show(it.beforeAfter)}`,
        ")",
        it.inconclusive && [" ", badge("inconclusive", "warn")],
      ];
      fill(
        box,
        facts([
          ["Measured", `${f.number(period.days)} days from ${f.periodName(period.from)}`],
          hits && ["Hits", line(hits, f.change)],
          savedMs && ["Time saved", line(savedMs, saved)],
          billedMs && ["Saved on the bill", line(billedMs, (less) => saved(-less))],
          closedBy && ["Ended with", revisionLink(tenant, closedBy)],
        ]),
      );
    },
    (error) => fill(box, predicted(one), hasStatus(error, 404) ? later : failure(error)),
  );
  return box;
}
