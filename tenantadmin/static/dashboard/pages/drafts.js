// Drafts of the rules, and the replays that were asked for.

import { call } from "../api.js";
import * as f from "../format.js";
import { can } from "../people.js";
import {
  a,
  acts,
  age,
  ask,
  badge,
  button,
  h,
  lintBadges,
  pageHead,
  revisionLink,
  tablePanel,
  text,
  to,
} from "../ui.js";

/** @type {Texts} */
export const STATE = {
  queued: "",
  running: "info",
  done: "good",
  failed: "bad",
  cancelled: "warn",
};

/** @type {Show} */
export async function show({ tenant, reload, go }) {
  const [{ drafts }, { replays }] = await Promise.all([
    call("GET /config/tenants/{tenant}/rules/drafts", { tenant }),
    call("GET /tenants/{tenant}/replays", { tenant }),
  ]);
  const mayWrite = can(tenant, "write");
  const make = async () =>
    go(
      to(
        tenant,
        `drafts/${(await call("POST /config/tenants/{tenant}/rules/drafts", { tenant, body: {} })).draftId}`,
      ),
    );
  const remove = (/** @type {Contract.DraftHead} */ draft) =>
    ask({
      title: "Delete this draft?",
      body: draft.name || NEW,
      action: "Delete",
      danger: true,
      then: reload,
      run: () =>
        call("DELETE /config/tenants/{tenant}/rules/drafts/{draft}", {
          tenant,
          draft: draft.draftId,
        }),
    });
  return h(
    "div",
    pageHead(
      "Drafts and replay",
      "Try rules on the requests of past days before you publish them.",
      mayWrite && button("New draft", make, "primary"),
    ),
    tablePanel(
      "Drafts",
      null,
      [
        {
          head: "Draft",
          cell: (row) => a(to(tenant, `drafts/${row.draftId}`), h("strong", row.name || NEW)),
        },
        text("Lint", "lint", (lint) => lintBadges(lint.errors.length, lint.warnings.length)),
        text("Made from", "baseSeq", (seq) => revisionLink(tenant, seq)),
        age("Changed", "modifiedAt"),
        text("By", "modifiedBy"),
        mayWrite && acts((row) => button("Delete", () => remove(row), "quiet small")),
      ],
      drafts,
      { none: "There are no drafts." },
    ),
    listReplays(tenant, replays),
  );
}

/** What a draft is called that changes nothing yet. */
const NEW = "New draft, without changes";

/** @type {(tenant: string, replays: Contract.ReplaySummary[]) => HTMLElement} */
export const listReplays = (tenant, replays) =>
  tablePanel(
    "Replays",
    null,
    [
      {
        head: "Rules",
        class: "value",
        cell: (row) => a(to(tenant, `replays/${row.replayId}`), row.name),
      },
      { ...text("Days", "window", (days) => days.text), class: "nowrap" },
      text("Result", "outcome", (outcome) => outcome ?? f.NONE),
      text("State", "state", (state) => badge(state, STATE[state])),
      age("Asked", "requestedAt"),
      text("By", "requestedBy", (by) => (by === "system" ? "the search for recommendations" : by)),
    ],
    replays,
    { limit: 20, none: "There are no replays yet." },
  );

/** @param {{state: string} | null} run a replay or a search */
export const isUnderWay = (run) => run?.state === "queued" || run?.state === "running";
