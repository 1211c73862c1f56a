// The revisions of rules and configuration: what each changed, compare, restore.

import { call } from "../api.js";
import { compareRules, compareValues, fieldTable, ruleDiff } from "../diff.js";
import * as f from "../format.js";
import { EMPTIES, commentInput } from "../forms.js";
import { can } from "../people.js";
import { validate } from "../ruleset.js";
import { ask, badge, beside, button, code, failure, fill, h, lintBadges, nextOf, notify, pageHead, panel, replaceAddress, skeleton, tabs, to } from "../ui.js";

/** @typedef {"rules" | "config"} Kind */

/** @type {Texts} */
const KIND = { create: "good", update: "info", restore: "warn", delete: "bad" };

/** @type {Show} */
export async function show(context) {
  const { tenant, query } = context;
  const kind = query.get("kind") === "config" ? "config" : "rules";
  const page = await load(tenant, kind);
  const detail = h("div");
  const wanted = page.changes.find((one) => String(one.seq) === query.get("seq")) ?? page.changes[0];
  const list = h("ul.findings", { "aria-label": "Revisions" });
  const choose = (/** @type {Contract.Change} */ change) => {
    replaceAddress(to(tenant, "history", { kind, seq: change.seq }));
    for (const entry of list.children) entry.classList.toggle("chosen", entry.id === `seq-${change.seq}`);
    showRevision(context, kind, change, page.changes[0].seq, detail);
  };
  const more = h("div.more");
  const add = (/** @type {Contract.ChangeHistoryPage} */ last) => {
    list.append(...last.changes.map((change) => h("li", { id: `seq-${change.seq}` }, h("button", { type: "button", onclick: () => choose(change) },
      h("div.row", h("strong", `#${change.seq}`), badge(change.action, KIND[change.action]),
        change.restoredFrom !== undefined && beside(`of #${change.restoredFrom}`),
        beside(f.ago(change.changedAt))),
      h("div.muted.small", change.userId)))));
    const cursor = nextOf(last);
    fill(more, cursor && button("Older revisions", async () => add(await load(tenant, kind, cursor))));
  };
  add(page);
  if (wanted) choose(wanted);
  return h("div", pageHead("History"),
    tabs([[to(tenant, "history", { kind: "rules" }), "Rules", kind === "rules"], [to(tenant, "history", { kind: "config" }), "Configuration", kind === "config"]]),
    h("div.split.left", panel("Revisions", null, list, more), detail));
}

/** @param {string} tenant @param {Kind} kind @param {string} [cursor] */
const load = (tenant, kind, cursor) => (kind === "rules" ? call("GET /config/tenants/{tenant}/rules/history", { tenant, cursor })
  : call("GET /config/tenants/{tenant}/config/history", { tenant, cursor }));

/** @param {Context} context @param {Kind} kind @param {Contract.Change} change @param {number} newest @param {HTMLElement} detail */
async function showRevision(context, kind, change, newest, detail) {
  const { tenant } = context;
  const { seq } = change;
  fill(detail, skeleton(3));
  const isNewest = seq === newest;
  const against = h("select", { "aria-label": "Compare with", onchange: () => compare() }, seq > 0 && h("option", { value: "" }, `what it changed (#${seq - 1} → #${seq})`),
    !isNewest && h("option", { value: "now" }, `what has changed since (#${seq} → #${newest})`));
  const body = h("div");
  const compare = async () => {
    const [from, last] = against.value ? [seq, newest] : [seq - 1, seq];
    fill(body, skeleton(2));
    try {
      fill(body, from < 0 ? h("p.pad.muted", "This is the first revision.") : (await difference(from, last)).shown);
    } catch (error) {
      fill(body, failure(error, compare));
    }
  };
  const document_ = async (/** @type {number} */ number) => (kind === "rules" ? await call("GET /config/tenants/{tenant}/rules/history/{seq}", { tenant, seq: number })
    : await call("GET /config/tenants/{tenant}/config/history/{seq}", { tenant, seq: number })).document;
  const difference = async (/** @type {number} */ from, /** @type {number} */ last) => {
    const [before, after] = await Promise.all([document_(from), document_(last)]);
    const fields = compareValues(before, after, "");
    return { isSame: !fields.length, after, shown: kind === "rules" ? ruleDiff(compareRules(before?.rules ?? [], after?.rules ?? []))
      : fields.length ? h("div.diff", fieldTable(fields)) : h("p.pad.muted", "Nothing differs.") };
  };
  const restore = async () => {
    const { after, shown } = await difference(newest, seq);
    const lint = kind === "rules" && await validate(after?.rules, context.signal);
    const comment = commentInput();
    await ask({
      title: `Restore revision ${seq}?`, action: "Restore", wide: true,
      body: [h("p", `Revision ${seq} is checked as a new write, and becomes revision ${newest + 1}.`, kind === "rules" && ` ${EMPTIES}`),
        lint && h("p", lintBadges(lint.errors.length, lint.warnings.length)),
        shown, comment.field],
      run: () => (kind === "rules" ? call("POST /config/tenants/{tenant}/rules/history/{seq}/restore", { tenant, seq, comment: comment.value() })
        : call("POST /config/tenants/{tenant}/config/history/{seq}/restore", { tenant, seq, comment: comment.value() })),
      then: () => {
        notify(`Revision ${seq} is restored.`);
        replaceAddress(to(tenant, "history", { kind }));
        context.query.delete("seq");
        context.reload();
      },
    });
  };
  const whole = h("details.pad", h("summary.muted.small", "The whole document"));
  whole.addEventListener("toggle", async () => whole.append(code(await document_(seq))), { once: true });
  const offer = can(tenant, "write") && !isNewest && change.action !== "delete" && button("Restore", restore);
  fill(detail, panel(`Revision ${seq}`, [against.options.length > 0 && against, offer],
    h("p.pad.muted", `${change.action} by ${change.userId}, ${f.when(change.changedAt)}`),
    change.summary.comment && h("p.pad", `“${change.summary.comment}”`), body, whole));
  await compare();
  // Restoring a revision that equals the live document would only empty the cache.
  if (offer && (await difference(newest, seq)).isSame) offer.remove();
}
