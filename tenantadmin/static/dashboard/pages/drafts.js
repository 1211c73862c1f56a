// Drafts of the rules, and the replays that were asked for.

import { call } from "../api.js";
import { h } from "../dom.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { to } from "../router.js";
import { a, ask, badge, button, empty, panel, table } from "../ui.js";
import { makeDraft } from "./rules.js";

/** @type {Record<string, string>} */
export const STATE = { queued: "", running: "info", done: "good", failed: "bad", cancelled: "warn" };

/** @type {import("../router.js").Show} */
export async function show({ tenant, reload }) {
  const [{ drafts }, { replays }] = await Promise.all([
    call("GET /config/tenants/{tenant}/rules/drafts", { tenant }), call("GET /tenants/{tenant}/replays", { tenant }),
  ]);
  const mayWrite = can(tenant, "write");
  const remove = async (/** @type {Contract.DraftHead} */ draft) => {
    const done = await ask({ title: "Delete this draft?", body: draft.name || "Draft", action: "Delete", danger: true,
      run: () => call("DELETE /config/tenants/{tenant}/rules/drafts/{draft}", { tenant, draft: draft.draftId }) });
    if (done) reload();
  };
  return h("div", null,
    h("header", { class: "page-head" }, h("div", null, h("h1", null, "Drafts and replay"),
      h("p", { class: "muted" }, "Try rules on the requests of past days before you publish them.")),
    mayWrite && button("New draft", () => makeDraft(tenant), "primary")),
    panel("Drafts", null, drafts.length ? table([
      { head: "Draft", cell: (row) => a(to(tenant, `drafts/${row.draftId}`), h("strong", null, row.name || "Untitled")) },
      { head: "Of revision", number: true, cell: (row) => `#${row.baseSeq}` },
      { head: "Lint", cell: (row) => lintBadge(row.lint) },
      { head: "Changed", cell: (row) => [f.ago(row.modifiedAt), " by ", row.modifiedBy] },
      ...(mayWrite ? [{ head: "Actions", hidden: true, number: true, cell: (/** @type {any} */ row) => button("Delete", () => remove(row), "quiet small") }] : []),
    ], drafts, { label: "Drafts" }) : empty("There are no drafts.")),
    listReplays(tenant, replays));
}

/**
 * @param {string} tenant
 * @param {Contract.ReplaySummary[]} replays
 * @param {boolean} [ofDraft] they are all of one draft
 */
export const listReplays = (tenant, replays, ofDraft = false) => panel("Replays", null, replays.length ? table([
  { head: "Days", cell: (row) => a(to(tenant, `replays/${row.replayId}`), `${f.dayShort(row.window.from)} – ${f.dayShort(row.window.to)}`) },
  ...(ofDraft ? [] : [{ head: "Rules", cell: (/** @type {any} */ row) => subject(row.subject) }]),
  { head: "State", cell: (row) => badge(row.state, STATE[row.state]) },
  { head: "Asked", cell: (row) => [f.ago(row.requestedAt), " by ", row.requestedBy] },
], replays, { label: "Replays", limit: 20 }) : empty("There are no replays yet."));

/** @param {Contract.RuleLintResult} lint */
export const lintBadge = (lint) => (lint.errors.length ? badge(f.count(lint.errors.length, "error"), "bad")
  : lint.warnings.length ? badge(f.count(lint.warnings.length, "warning"), "warn") : badge("no findings", "good"));

/** @param {Contract.ReplaySubject} of */
export const subject = (of) => (of.seq !== undefined ? `revision #${of.seq}` : of.draftId ? "a draft" : "given rules");
