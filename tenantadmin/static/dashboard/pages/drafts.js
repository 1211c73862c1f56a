// Drafts of the rules, and the replays that were asked for.

import { call } from "../api.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { a, acts, ask, badge, button, h, lintBadges, num, pageHead, tablePanel, text, to } from "../ui.js";
import { makeDraft } from "./rules.js";

/** @type {Texts} */
export const STATE = { queued: "", running: "info", done: "good", failed: "bad", cancelled: "warn" };

/** @type {Show} */
export async function show({ tenant, reload }) {
  const [{ drafts }, { replays }] = await Promise.all([
    call("GET /config/tenants/{tenant}/rules/drafts", { tenant }), call("GET /tenants/{tenant}/replays", { tenant }),
  ]);
  const mayWrite = can(tenant, "write");
  const remove = (/** @type {Contract.DraftHead} */ draft) => ask({ title: "Delete this draft?", body: draft.name || "Draft", action: "Delete", danger: true, then: reload,
    run: () => call("DELETE /config/tenants/{tenant}/rules/drafts/{draft}", { tenant, draft: draft.draftId }) });
  return h("div",
    pageHead("Drafts and replay", "Try rules on the requests of past days before you publish them.", mayWrite && button("New draft", () => makeDraft(tenant), "primary")),
    tablePanel("Drafts", null, [
      { head: "Draft", cell: (row) => a(to(tenant, `drafts/${row.draftId}`), h("strong", row.name || "Untitled")) },
      num("Of revision", "baseSeq", (seq) => `#${seq}`),
      text("Lint", "lint", (lint) => lintBadges(lint.errors.length, lint.warnings.length)),
      { head: "Changed", cell: (row) => [f.ago(row.modifiedAt), " by ", row.modifiedBy] },
      mayWrite && acts((row) => button("Delete", () => remove(row), "quiet small")),
    ], drafts, { none: "There are no drafts." }),
    listReplays(tenant, replays, drafts));
}

/** @type {(tenant: string, replays: Contract.ReplaySummary[], drafts?: Contract.DraftHead[]) => HTMLElement} without `drafts`, they are all of one draft */
export const listReplays = (tenant, replays, drafts) => tablePanel("Replays", null, [
  { head: "Days", cell: (row) => a(to(tenant, `replays/${row.replayId}`), `${f.dayShort(row.window.from)} – ${f.dayShort(row.window.to)}`), class: "nowrap" },
  !!drafts && text("Rules", "subject", (of) => subject(of, drafts)), text("State", "state", (state) => badge(state, STATE[state])),
  { head: "Asked", cell: (row) => [f.ago(row.requestedAt), " by ", row.requestedBy] },
], replays, { limit: 20, none: "There are no replays yet." });

/** @param {{state: string} | null} run a replay or a search */
export const isUnderWay = (run) => run?.state === "queued" || run?.state === "running";

/** @param {Contract.ReplaySubject} of @param {Contract.DraftHead[]} [drafts] */
export const subject = (of, drafts = []) => {
  const draft = drafts.find((one) => one.draftId === of.draftId);
  return of.seq !== undefined ? `revision #${of.seq}` : draft ? draft.name || "Untitled" : of.draftId ? "a draft that is gone" : "rules that a program sent";
};
