// Publish rules or restore a revision: one dialog for both, and Undo afterwards.

import { ApiError, call, configOf, hasStatus, rulesOf } from "./api.js";
import { confirmDangers, dangersOf } from "./danger.js";
import { changesIn, compareRules, ruleDiff } from "./diff.js";
import { addDays, ago, count, yesterday } from "./format.js";
import { commentInput } from "./forms.js";
import { nameIn, readRules } from "./rulenames.js";
import { validate } from "./ruleset.js";
import {
  ask,
  badge,
  button,
  checkbox,
  fine,
  go,
  h,
  lintBadges,
  notify,
  sentence,
  to,
} from "./ui.js";

/** @typedef {"rules" | "config"} Kind */

/**
 * Ask before a document is replaced: the difference, lint, the last replay, the cheapest hour,
 * warnings; the comment is beside the button.
 * @param
 *   {{context: Context, kind?: Kind, title: string, action: string, warning?: Child,
 *   difference: Child, lint: Contract.RuleLintResult | null, rules?: any[], touched?: string[],
 *   isReplayOf?: (replay: Contract.ReplaySummary) => boolean, prediction?: Child, replay?: () =>
 *   Promise<any>, run: (comment: string) => Promise<{seq: number}>, then: () => any}}
 *   publication
 */
export async function askToPublish({
  context,
  kind = "rules",
  title,
  action,
  warning,
  difference,
  lint,
  rules,
  touched,
  isReplayOf,
  prediction,
  replay,
  run,
  then,
}) {
  const { tenant } = context;
  const comment = commentInput();
  const isRules = kind === "rules";
  const predicted =
    isRules &&
    (await predict(tenant, isReplayOf, prediction, replay).catch((error) => ({
      figures: fine(`The last replay could not be read: ${sentence(error)}`),
      isReplayed: false,
      isPoor: false,
    })));
  const dangers = lint && isRules ? dangersOf(lint, rules ?? [], touched) : [];
  const despite = checkbox("despitePoor", false);
  const { panel, missing } = confirmDangers(
    dangers,
    dangers.length > 0 && predicted && !predicted.isReplayed && replay,
  );
  let seq = 0;
  // The user has left the page meanwhile.
  if (!context.isShown()) return;
  await ask({
    title,
    wide: true,
    action,
    danger: dangers.length > 0,
    missing: () =>
      missing() ||
      (predicted && predicted.isPoor && !despite.checked && "Confirm that the figures say little."),
    beside: comment.field,
    body: h(
      "div",
      warning,
      panel,
      h("div.changes", { tabindex: 0, role: "region", "aria-label": "What changes" }, difference),
      lint && findings(lint, rules),
      predicted && predicted.figures,
      predicted &&
        predicted.isPoor &&
        h(
          "label.check",
          despite,
          "The replay differs much from the log, so its figures say little",
        ),
    ),
    run: async () => {
      ({ seq } = await run(comment.value()));
    },
    then: async () => {
      await then();
      notify(
        `Revision ${seq} is in force.`,
        "revision",
        seq > 0 &&
          button(
            `Undo: restore revision ${seq - 1}`,
            async () => {
              const now = isRules ? await rulesOf(tenant) : await configOf(tenant);
              if (now.seq !== seq)
                throw new Error("Another revision was published since: see the history.");
              const here = location.hash;
              await restore(tenant, kind, seq - 1, `Undo of revision ${seq}`);
              if (location.hash === here) go(here);
              notify(
                `Undone: the ${isRules ? "rules" : "configuration"} of revision ${seq - 1} are in force again.`,
              );
            },
            "small",
          ),
      );
    },
  });
}

/** @param {Contract.RuleLintResult} lint @param {any[]} [rules] that it concerns */
const findings = ({ errors, warnings }, rules = []) =>
  h(
    "details",
    h("summary", "Lint: ", lintBadges(errors.length, warnings.length)),
    [...errors, ...warnings].map((one) =>
      h(
        "p.small",
        badge(one.code, one.severity === "error" ? "bad" : "warn"),
        " ",
        one.ruleId && h("strong", { title: one.ruleId }, nameIn(rules, one.ruleId)),
        " ",
        one.message,
      ),
    ),
  );

/**
 * @param {string} tenant
 * @param {(replay: Contract.ReplaySummary) => boolean} [isOf]
 * @param {Child} [prediction]
 * @param {() => Promise<any>} [replay] what the last replay of the rules says, or else what was
 *   predicted, and when publishing costs least
 */
async function predict(tenant, isOf, prediction, replay) {
  const done = (await call("GET /tenants/{tenant}/replays", { tenant })).replays.filter(
    (one) => one.state === "done",
  );
  const own = isOf && done.find(isOf);
  const last = own ?? done[0];
  const [run, shown] = await Promise.all([
    last && call("GET /tenants/{tenant}/replays/{replayId}", { tenant, replayId: last.replayId }),
    import("./pages/replay.js"),
  ]);
  const [judgement, tiles] =
    own && run && !run.judgement?.isAgainstEarlier ? shown.outcome(run) : [];
  const figures = h(
    "div",
    judgement,
    tiles ??
      prediction ??
      h(
        "div.callout",
        "No replay compares these rules with the rules in force. ",
        replay && button("Replay them", replay, "small"),
      ),
    run ? shown.publishCost(run, !!own) : fine("Publishing empties the cache."),
  );
  return { figures, isReplayed: !!own, isPoor: !!own && run?.calibration?.grade === "poor" };
}

/** @type {(tenant: string, kind: Kind, seq: number, comment: string) => Promise<{seq: number}>} */
export const restore = (tenant, kind, seq, comment) =>
  kind === "rules"
    ? publishing(tenant, (confirmDeletes) =>
        call("POST /config/tenants/{tenant}/rules/history/{seq}/restore", {
          tenant,
          seq,
          comment,
          confirmDeletes,
        }),
      )
    : call("POST /config/tenants/{tenant}/config/history/{seq}/restore", { tenant, seq, comment });

/**
 * @param {Context} context
 * @param {Contract.TenantRules} stored
 * @param {any[]} rules
 * @param {() => void} saved publish rules in place of the stored ones
 */
export async function reviewRules(context, stored, rules, saved) {
  const { tenant } = context;
  const difference = compareRules(stored.rules, rules);
  if (!changesIn(difference)) throw new Error("Nothing differs from the rules in force.");
  const lint = await validate(rules, stored.rules);
  if (!lint.valid)
    throw new Error(
      `Correct the ${count(lint.errors.length, "error")} first, or keep the rules as a draft: ${lint.errors[0].message}`,
    );
  await askToPublish({
    context,
    title: "Publish these rules?",
    action: "Publish",
    difference: ruleDiff({ ...difference, changed: lint.changed ?? [] }),
    lint,
    rules,
    touched: [...difference.added, ...difference.changed].map((one) => one.id),
    replay: () => replayRules(context, stored, rules, saved),
    run: (comment) =>
      publishing(tenant, (confirmDeletes) =>
        call("PUT /config/tenants/{tenant}/rules", {
          tenant,
          confirmDeletes,
          comment,
          body: { rules, seq: stored.seq, cacheBust: stored.cacheBust },
        }),
      ).catch((error) => {
        throw hasStatus(error, 409)
          ? new Error(
              "Another user has published other rules meanwhile. Keep yours as a draft: it shows the conflicts.",
            )
          : error;
      }),
    then: () => {
      saved();
      context.go(to(tenant, "rules"));
    },
  });
}

/**
 * @param {Context} context
 * @param {Contract.ReplaySubject & {from?: string, to?: string}} subject replay it, on the last
 *   seven days if it names none
 * @param {Texts} [next] what the page of the replay does when it is done
 */
export async function startReplay({ tenant, go }, subject, next) {
  const last = yesterday();
  const { replayId, finishedAt } = await call("POST /tenants/{tenant}/replays", {
    tenant,
    body: { from: addDays(last, -6), to: last, ...subject },
  });
  go(to(tenant, `replays/${replayId}`, next));
  if (finishedAt)
    notify(`This replay, made ${ago(finishedAt)}, is of the same rules and days: it is current.`);
}

/** @param {string} tenant @param {Contract.TenantRules} stored @param {any[]} rules */
const makeDraft = (tenant, stored, rules) =>
  call("POST /config/tenants/{tenant}/rules/drafts", {
    tenant,
    body: { rules, baseSeq: stored.seq },
  });

/**
 * @param {Context} context
 * @param {Contract.TenantRules} stored
 * @param {any[]} rules kept as a draft, and replayed
 * @param {() => void} saved
 */
export async function replayRules(context, stored, rules, saved) {
  const { draftId } = await makeDraft(context.tenant, stored, rules);
  saved();
  await startReplay(context, { draftId });
}

/**
 * @param {Context} context
 * @param {Contract.TenantRules} stored
 * @param {any[]} rules
 * @param {() => void} saved
 */
export async function keepAsDraft({ tenant, go }, stored, rules, saved) {
  const draft = await makeDraft(tenant, stored, rules);
  saved();
  const { added, changed } = compareRules(stored.rules, rules);
  go(to(tenant, `drafts/${draft.draftId}`, { rule: [...added, ...changed][0]?.id }));
}

/**
 * @template T
 * @param {string} tenant
 * @param {(confirmDeletes?: string) => Promise<T>} run publish; ask again where rules with active
 *   markers go
 * @returns {Promise<T>}
 */
export async function publishing(tenant, run) {
  try {
    return await run();
  } catch (error) {
    const errors = /** @type {Contract.Finding[]} */ (
      (error instanceof ApiError && error.body?.errors) || []
    );
    const ids = errors
      .filter((one) => one.code === "rule-removed-active-marker")
      .map((one) => one.ruleId ?? "");
    if (!ids.length || ids.length < errors.length) throw error;
    const { name } = await readRules(tenant);
    if (
      !confirm(
        `These rules still have active markers: ${ids.map((id) => name(id)).join(", ")}. Remove them all the same?`,
      )
    )
      throw error;
    return run(ids.join(","));
  }
}
