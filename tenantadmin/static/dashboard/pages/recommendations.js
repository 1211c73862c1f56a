// What the search recommends, as one list: choose several, publish them together; what they did.

import { details, accept, mayTake, OPEN } from "../advice.js";
import { call } from "../api.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { staff } from "../staff.js";
import { takeTogether } from "../together.js";
import { unseen } from "../visits.js";
import {
  badge,
  button,
  empty,
  fill,
  h,
  notify,
  num,
  opening,
  pageHead,
  revisionLink,
  tablePanel,
  tabs,
  text,
  to,
} from "../ui.js";
import { isUnderWay } from "./drafts.js";

/** @typedef {Contract.Recommendation} Recommendation */

/** @type {Texts} */
const STATE = { drafted: "info", superseded: "warn" };
/** @type {Texts} colours of purposes */
const PURPOSE = {
  privacy: "bad",
  "fresh results": "warn",
  "saves money": "good",
  "saves time": "info",
};
/** @type {Texts} */
const CONFIDENCE = { high: "good", medium: "info", low: "warn" };

/** @type {Show} */
export async function show(context) {
  const { tenant, query } = context;
  const { recommendations, mining, possible, ledger } = await call(
    "GET /tenants/{tenant}/recommendations",
    { tenant },
  );
  const view = query.get("show") ?? "open";
  const open = recommendations.filter(({ state }) => OPEN.has(state));
  const accepted = recommendations.filter(({ state }) => state === "accepted");
  const past = recommendations.filter(({ state }) => !OPEN.has(state) && state !== "accepted");
  const fresh = unseen(tenant, open);
  const mine = async () => {
    await call("POST /tenants/{tenant}/recommendations", { tenant });
    notify("The log is being read.");
    context.reload();
  };
  const isMining = isUnderWay(mining);
  const progress = badge(`searching, ${f.percent(mining?.progress)}`, "info");
  const isBehind = open.some((one) => one.outdated);
  // The page stays until the end: its buttons are used meanwhile.
  if (isMining)
    context.until(async () => {
      const now = (await call("GET /tenants/{tenant}/recommendations", { tenant })).mining;
      fill(progress, `searching, ${f.percent(now?.progress)}`);
      return !isUnderWay(now);
    });
  const replay = query.get("publish");
  const published = replay && open.find((one) => one.replayId === replay);
  if (published && mayTake(published, published) && can(tenant, "write"))
    context.later(() => accept(context, published));
  return h(
    "div",
    pageHead(
      "Recommendations",
      isMining
        ? "Past requests are being searched."
        : mining
          ? `Past requests were searched ${f.ago(mining.finishedAt ?? mining.requestedAt)}.`
          : "Past requests were not searched yet.",
      // Support searches too: that changes nothing.
      (can(tenant, "write") || staff()) && (isMining ? progress : button("Search now", mine)),
    ),
    tabs([
      [
        to(tenant, "recommendations"),
        `Open (${open.length}${fresh.length ? `, ${fresh.length} new` : ""})`,
        view === "open",
      ],
      [
        to(tenant, "recommendations", { show: "ledger" }),
        `Accepted (${accepted.length})`,
        view === "ledger",
      ],
      [
        to(tenant, "recommendations", { show: "past" }),
        `Earlier (${past.length})`,
        view === "past",
      ],
    ]),
    mining?.error && h("p.callout.bad", mining.error),
    view === "ledger"
      ? listAccepted(context, accepted, ledger)
      : view === "past"
        ? listPast(context, past)
        : [
            possible && h("p.callout", possible),
            isBehind &&
              h(
                "p.callout.warn",
                "The rules have changed since the search. What it recommends would change the rules of before, and cannot be accepted: ",
                isMining ? "a new search is running." : "search again.",
              ),
            open.length
              ? listOpen(context, open, fresh)
              : empty(isMining ? "The log is being read." : "Nothing is recommended now."),
            leftAlone(mining?.report?.notProposed ?? []),
          ],
  );
}

/**
 * @param {Context} context
 * @param {Recommendation[]} open those that make results right, then the greatest gain
 * @param {Recommendation[]} fresh those that are new since the last visit
 */
function listOpen(context, open, fresh) {
  const { tenant } = context;
  const together = takeTogether(
    context,
    can(tenant, "write") ? open.filter((one) => mayTake(one, one) && one.state === "open") : [],
  );
  return [
    tablePanel(
      "What to change",
      null,
      [
        together.mayChoose && { head: "Choose", hidden: true, cell: together.tick },
        what(context, (one) => [
          fresh.includes(one) && badge("new since your last visit", "info"),
          badge(one.purpose ?? "", PURPOSE[one.purpose ?? ""]),
          one.state !== "open" && badge(one.state, STATE[one.state]),
          one.outdated && badge(`of revision ${one.basedOn.seq}`, "warn"),
        ]),
        summary("Gain", "gain"),
        summary("Risk", "risk"),
        summary("Effort", "effort"),
        {
          head: "Confidence",
          cell: ({ summary: { confidence, bounds } }) =>
            h("span", { title: bounds, tabindex: 0 }, badge(confidence, CONFIDENCE[confidence])),
        },
      ],
      open,
    ),
    together.bar,
  ];
}

/**
 * @param {Context} context
 * @param {Recommendation[]} accepted
 * @param {string | null | undefined} ledger what they gained
 */
const listAccepted = (context, accepted, ledger) => [
  ledger && h("p.callout", ledger),
  tablePanel(
    "Accepted",
    null,
    [
      what(context),
      text("By", "decidedBy", (by) => (by === "system" ? "seen in the prices" : by)),
      {
        ...text("When", "decidedAt", f.ago),
        cell: (one) => [
          h("span", { title: f.when(one.decidedAt) }, f.ago(one.decidedAt)),
          one.acceptedSeq && h("div.small", revisionLink(context.tenant, one.acceptedSeq)),
        ],
        class: "nowrap",
      },
      summary("Predicted", "gain"),
      summary("Measured", "measured"),
    ],
    accepted,
    { none: "Nothing was accepted yet." },
  ),
];

/** @param {Context} context @param {Recommendation[]} past */
const listPast = (context, past) =>
  tablePanel(
    "Dismissed or no longer found",
    null,
    [
      what(context, (one) =>
        badge(
          one.state !== "superseded"
            ? one.state
            : one.reason
              ? "others came first"
              : "no longer found",
          STATE[one.state],
        ),
      ),
      summary("Gain", "gain"),
      text("Why", "reason"),
    ],
    past,
    { none: "There is nothing earlier." },
  );

/** @type {(context: Context, badges?: (one: Recommendation) => Child) => Column} */
const what = (context, badges) => ({
  head: "What",
  class: "wide-cell",
  cell: (one) =>
    opening([h("strong", one.title), " ", badges?.(one), h("div.muted.small", one.why[0])], () =>
      details(context, one),
    ),
});

/** @type {(head: string, key: string) => Column} a text of the summary */
const summary = (head, key) => ({
  head,
  class: "value",
  cell: (one) => one.summary[key] ?? f.NONE,
});

/** @param {Contract.NotProposed[]} rows */
const leftAlone = (rows) =>
  rows.length > 0 &&
  tablePanel(
    "What was left alone, and why",
    null,
    [
      { ...text("Why", "why"), class: "wide-cell" },
      num("Statements", "statements"),
      num("Requests", "requests"),
      num("In the warehouse", "warehouseMs", f.duration),
    ],
    rows,
    { label: "What was left alone", sorted: 3 },
  );
