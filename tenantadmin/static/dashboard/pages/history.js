// The revisions of rules and configuration: what each changed, compare, restore.

import { call } from "../api.js";
import { compareRules, compareValues, fieldTable, ruleDiff } from "../diff.js";
import { fill, h } from "../dom.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { replaceAddress, to } from "../router.js";
import { validate } from "../ruleset.js";
import { ask, badge, button, failure, field, notify, panel, skeleton, tabs } from "../ui.js";
import { commentInput } from "./rules-edit.js";

/** @typedef {import("../router.js").Context} Context */

/** @type {Record<string, string>} */
const KIND = { create: "good", update: "info", restore: "warn", delete: "bad" };

/** @type {import("../router.js").Show} */
export async function show(context) {
  const { tenant, query } = context;
  const kind = query.get("kind") === "config" ? "config" : "rules";
  const page = await load(tenant, kind);
  const detail = h("div", null);
  const wanted = page.changes.find((one) => String(one.seq) === query.get("seq")) ?? page.changes[0];
  const list = h("ul", { class: "findings", "aria-label": "Revisions" });
  const choose = (/** @type {Contract.Change} */ change) => {
    replaceAddress(to(tenant, "history", { kind, seq: change.seq }));
    for (const entry of list.children) entry.classList.toggle("chosen", entry.id === `seq-${change.seq}`);
    showRevision(context, kind, change, page.changes[0].seq, detail);
  };
  const add = (/** @type {Contract.Change[]} */ changes) => list.append(...changes.map((change) =>
    h("li", { id: `seq-${change.seq}` }, h("button", { type: "button", onclick: () => choose(change) },
      h("div", { class: "row" }, h("strong", null, `#${change.seq}`), badge(change.action, KIND[change.action]),
        change.restoredFrom !== undefined && h("span", { class: "muted small" }, `of #${change.restoredFrom}`),
        h("span", { class: "muted small" }, f.ago(change.changedAt))),
      h("div", { class: "muted small" }, change.userId)))));
  add(page.changes);
  const more = h("div", { class: "more" });
  const offerMore = (/** @type {Contract.ChangeHistoryPage} */ last) => {
    const cursor = new URLSearchParams(last._links.next?.href.split("?")[1]).get("cursor");
    fill(more, cursor && button("Older revisions", async () => {
      const next = await load(tenant, kind, cursor);
      add(next.changes);
      offerMore(next);
    }));
  };
  offerMore(page);
  if (wanted) choose(wanted);
  return h("div", null, h("header", { class: "page-head" }, h("h1", null, "History")),
    tabs([[to(tenant, "history", { kind: "rules" }), "Rules", kind === "rules"], [to(tenant, "history", { kind: "config" }), "Configuration", kind === "config"]]),
    h("div", { class: "split left" }, panel("Revisions", null, list, more), detail));
}

/**
 * @param {string} tenant
 * @param {"rules" | "config"} kind
 * @param {string} [cursor]
 */
function load(tenant, kind, cursor) {
  return kind === "rules" ? call("GET /config/tenants/{tenant}/rules/history", { tenant, cursor })
    : call("GET /config/tenants/{tenant}/config/history", { tenant, cursor });
}

/**
 * @param {Context} context
 * @param {"rules" | "config"} kind
 * @param {Contract.Change} change
 * @param {number} newest
 * @param {HTMLElement} detail
 */
async function showRevision(context, kind, change, newest, detail) {
  const { tenant } = context;
  const { seq } = change;
  fill(detail, skeleton(3));
  const isNewest = seq === newest;
  const against = h("select", { "aria-label": "Compare with" },
    seq > 0 && h("option", { value: seq - 1 }, `what it changed (#${seq - 1} → #${seq})`),
    !isNewest && h("option", { value: "now" }, `what has changed since (#${seq} → #${newest})`));
  const body = h("div", null);
  const compare = async () => {
    const chosen = /** @type {HTMLSelectElement} */ (against).value;
    fill(body, skeleton(2));
    try {
      if (!chosen) fill(body, h("p", { class: "pad muted" }, "This is the first revision."));
      else fill(body, await difference(tenant, kind, chosen === "now" ? seq : seq - 1, chosen === "now" ? newest : seq));
    } catch (error) {
      fill(body, failure(error, compare));
    }
  };
  against.addEventListener("change", compare);
  const revisionOf = (/** @type {number} */ number) => (kind === "rules" ? call("GET /config/tenants/{tenant}/rules/history/{seq}", { tenant, seq: number })
    : call("GET /config/tenants/{tenant}/config/history/{seq}", { tenant, seq: number }));
  const restore = async (/** @type {any} */ live, /** @type {any} */ old) => {
    const lint = kind === "rules" && await validate(old.rules, context.signal);
    const comment = commentInput();
    const done = await ask({
      title: `Restore revision ${seq}?`, action: "Restore", wide: true,
      body: [h("p", null, `Revision ${seq} is checked as a new write, and becomes revision ${newest + 1}.`, kind === "rules" && " The Gateway starts with an empty cache."),
        lint && h("p", null, badge(f.count(lint.errors.length, "error"), lint.valid ? "" : "bad"), " ", badge(f.count(lint.warnings.length, "warning"), lint.warnings.length ? "warn" : "")),
        kind === "rules" ? ruleDiff(compareRules(live.rules, old.rules)) : h("div", { class: "diff" }, fieldTable(compareValues(live, old, ""))),
        field("Comment", comment, "Why it changes. The history keeps it.")],
      run: () => (kind === "rules" ? call("POST /config/tenants/{tenant}/rules/history/{seq}/restore", { tenant, seq, comment: comment.value })
        : call("POST /config/tenants/{tenant}/config/history/{seq}/restore", { tenant, seq, comment: comment.value })),
    });
    if (!done) return;
    notify(`Revision ${seq} is restored.`);
    replaceAddress(to(tenant, "history", { kind }));
    context.query.delete("seq");
    context.reload();
  };
  const whole = h("details", { class: "pad" }, h("summary", { class: "muted small" }, "The whole document"));
  whole.addEventListener("toggle", async () => {
    const revision = await revisionOf(seq);
    whole.append(h("pre", { class: "code", tabindex: 0 }, JSON.stringify(revision.document, null, 2)));
  }, { once: true });
  const isOffered = can(tenant, "write") && !isNewest && change.action !== "delete";
  const documents = async () => (await Promise.all([revisionOf(newest), revisionOf(seq)])).map((one) => one.document);
  const offer = isOffered && button("Restore", async () => {
    const [live, old] = await documents();
    if (!compareValues(live, old, "").length) throw new Error(`Revision ${seq} says the same as the live one: there is nothing to restore.`);
    await restore(live, old);
  });
  fill(detail, panel(`Revision ${seq}`, [seq > 0 || !isNewest ? against : null, offer],
    h("p", { class: "pad muted" }, `${change.action} by ${change.userId}, ${f.when(change.changedAt)}`),
    change.summary.comment && h("p", { class: "pad" }, `“${change.summary.comment}”`), body, whole));
  await compare();
  if (!offer) return;
  // Restoring a revision that equals the live document would only empty the cache.
  const [live, old] = await documents();
  if (!compareValues(live, old, "").length) offer.remove();
}

/**
 * @param {string} tenant
 * @param {"rules" | "config"} kind
 * @param {number} from
 * @param {number} last
 */
async function difference(tenant, kind, from, last) {
  if (kind === "rules") {
    const { added, removed, changed } = await call("GET /config/tenants/{tenant}/rules/history/diff", { tenant, from, to: last });
    return ruleDiff({ added, removed, changed });
  }
  const { fields } = await call("GET /config/tenants/{tenant}/config/history/diff", { tenant, from, to: last });
  return fields.length ? h("div", { class: "diff" }, fieldTable(fields)) : h("p", { class: "pad muted" }, "Nothing differs.");
}
