// A replay: its progress, then what the rules would have done beside the rules that were in force.

import { call } from "../api.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { readRules } from "../rulenames.js";
import { PAUSE_MS } from "../router.js";
import { status } from "../statuses.js";
import {
  a,
  badge,
  beside,
  button,
  facts,
  failure,
  fill,
  h,
  pageHead,
  panel,
  refill,
  released,
  table,
  tablePanel,
  text,
  tiles,
  to,
} from "../ui.js";
import { STATE, isUnderWay } from "./drafts.js";

/** @typedef {Contract.Replay} Replay */

/** @type {Show} */
export async function show(context) {
  const {
    tenant,
    params: { replay },
  } = context;
  const [body, rules] = [h("div"), await readRules(tenant)];
  const poll = async () => {
    try {
      const run = await call("GET /tenants/{tenant}/replays/{replayId}", {
        tenant,
        replayId: replay,
      });
      await released(body);
      refill(body, page(context, run, rules));
      const { draftId } = run.subject;
      if (context.query.get("then") && draftId && run.judgement && run.judgement.tone !== "bad")
        return context.go(to(tenant, `drafts/${draftId}`, { open: "review" }));
      if (isUnderWay(run)) context.later(poll, PAUSE_MS);
    } catch (error) {
      fill(body, failure(error, poll));
    }
  };
  await poll();
  return body;
}

/** @param {Context} context @param {Replay} run @param {Rules} rules */
function page(context, run, rules) {
  const { tenant } = context;
  const {
    judgement,
    subject: { draftId },
  } = run;
  const isOpen = isUnderWay(run);
  const cancel = async () => {
    await call("DELETE /tenants/{tenant}/replays/{replayId}", { tenant, replayId: run.replayId });
    context.reload();
  };
  const head = pageHead(
    h("div.row", h("h1", "Replay"), badge(run.state, STATE[run.state])),
    [
      a(to(tenant, "drafts"), "Drafts and replay"),
      ` · ${run.window.text} · `,
      draftId ? a(to(tenant, `drafts/${draftId}`), run.name) : run.name,
    ],
    can(tenant, "write") &&
      (isOpen
        ? button("Cancel", cancel)
        : run.requestedBy === "system"
          ? judgement &&
            !judgement.isOutdated &&
            h(
              `a.button${judgement.tone === "bad" ? "" : ".primary"}`,
              { href: to(tenant, "recommendations", { publish: run.replayId }) },
              "Publish",
            )
          : draftId &&
            h(
              `a.button${judgement?.tone === "bad" ? "" : ".primary"}`,
              {
                href: to(tenant, `drafts/${draftId}`, {
                  open: judgement?.isOutdated ? "replay" : "review",
                }),
              },
              judgement?.isOutdated ? "Replay again" : "Review and publish",
            )),
  );
  if (isOpen) {
    return [
      head,
      panel(
        run.state === "queued" ? "Waiting for its turn" : "Running",
        null,
        h(
          "div.pad",
          h("progress.progress", { max: 1, value: run.progress, "aria-label": "Progress" }),
        ),
      ),
    ];
  }
  if (run.state !== "done")
    return [head, panel("No result", null, h("p.pad", run.error ?? "It was cancelled."))];
  return [head, ...result(tenant, run, rules)];
}

/** @type {(run: Replay) => string} */
const before = ({ against }) =>
  against?.seq === undefined ? "the rules in force" : `the rules of revision ${against.seq}`;

/** @param {string} tenant @param {Replay} run @param {Rules} rules */
function result(tenant, run, rules) {
  if (!run.total?.requests) return outcome(run);
  return [
    ...outcome(run),
    panel(
      "By rule",
      beside(`Below a number: its change, compared with ${before(run)}; ≈: likely`),
      byRule(run, rules),
    ),
    h("div.columns", moved(tenant, run), publishCost(run)),
    panel(
      "What to keep in mind",
      null,
      h(
        "div.pad.prose",
        h(
          "ul",
          run.notes?.map((note) => h("li", note)),
        ),
      ),
    ),
  ];
}

/** @param {Replay} run what it means for a decision, and its figures */
export const outcome = ({ judgement, figures }) =>
  !judgement
    ? []
    : [
        h(
          "div",
          { class: `callout ${judgement.tone}`, role: judgement.tone === "bad" && "alert" },
          judgement.text,
          " ",
          h("strong", judgement.next),
        ),
        figureTiles(figures),
      ];

/** @param {Contract.ReplayFigure[]} [figures] what rules change */
export const figureTiles = (figures = []) =>
  figures.length > 0 && tiles(figures.map(({ name, text, note }) => [name, text, note]));

/** @param {Replay} run @param {Rules} rules */
function byRule({ byRule: all = [] }, rules) {
  const show = (/** @type {Contract.ReplayRow[]} */ rows) =>
    table(
      [
        {
          head: "Rule",
          class: "value",
          cell: (row) =>
            row === all[0] ? row.name : rules.link(row.ruleId, row.name ?? undefined),
        },
        ...all[0].counts.map((one, index) => ({
          head: one.name,
          number: true,
          cell: (/** @type {Contract.ReplayRow} */ { counts }) => [
            counts[index].text,
            h("div.muted.small", counts[index].note),
          ],
        })),
      ],
      rows,
      { label: "By rule" },
    );
  const same = all.slice(1).filter((row) => !row.isChanged);
  return [
    show(all.filter((row) => !same.includes(row))),
    same.length > 0 &&
      h(
        "details.pad",
        h("summary.muted.small", `${f.count(same.length, "other")}, whose numbers stay the same`),
        show(same),
      ),
  ];
}

/** @param {string} tenant @param {Replay} run */
function moved(tenant, { moved: rows = [] }) {
  return tablePanel(
    "What ends differently",
    null,
    [
      text("Was", "from", status),
      text("Becomes", "to", status),
      {
        head: "Log entries",
        number: true,
        sort: (row) => row.count,
        cell: (row) => (row.bounds ? f.range(row.bounds, f.number) : f.number(row.count)),
      },
      rows.some((row) => row.examples[0]) && {
        head: "For instance",
        cell: (row) =>
          row.examples
            .slice(0, 1)
            .map((/** @type {string} */ id) =>
              a(to(tenant, "explain", { logId: id }), id.slice(0, 8)),
            ),
      },
    ],
    rows,
    { limit: 10, sorted: 2, none: "Everything ends as before." },
  );
}

/** @param {Replay} run @param {boolean} [isOwn] whether it replayed the rules that are published */
export function publishCost(run, isOwn = true) {
  const cost = run.publishCost;
  if (!cost) return null;
  const now = cost.byHour[new Date().getUTCHours()];
  const at = (/** @type {Contract.HourCost} */ one) =>
    `${f.hourHere(one.hour)}: ${f.count(one.extraMisses, "request")}, ${f.duration(one.extraMs)}`;
  return panel(
    "What publishing costs",
    null,
    facts(
      [
        ["Now", at(now)],
        cost.best.extraMs < now.extraMs && ["Least warehouse time", at(cost.best)],
      ],
      ".pad",
    ),
    h(
      "p.pad.muted.small",
      `Publishing empties the cache. On a mean day (${run.window.text}), this many requests would have to go to the warehouse again.${isOwn ? "" : " From the last replay, which was of other rules."}`,
    ),
  );
}
