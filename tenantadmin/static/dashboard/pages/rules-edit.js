// Edit the rules in force: lint as one types, a look at the difference, publish.

import { ApiError, call } from "../api.js";
import { compareRules, isSame, ruleDiff } from "../diff.js";
import { h } from "../dom.js";
import { count } from "../format.js";
import { can } from "../people.js";
import { go, to } from "../router.js";
import { rulesetEditor, validate } from "../ruleset.js";
import { a, ask, badge, button, field, input, notify } from "../ui.js";

/** @type {import("../router.js").Show} */
export async function show(context) {
  const { tenant, signal } = context;
  const stored = await call("GET /config/tenants/{tenant}/rules", { tenant });
  const mayWrite = can(tenant, "write");
  const editor = await rulesetEditor({ rules: stored.rules, label: "Rules as JSON", context, readOnly: !mayWrite, begin: context.query.get("tables")?.split(",") });

  const comment = commentInput();
  const review = async () => {
    const rules = editor.read();
    if (!rules) throw new Error("The text is no JSON array. Correct it first.");
    const difference = compareRules(stored.rules, rules);
    if (isSame(difference)) throw new Error("Nothing differs from the rules in force.");
    const lint = await validate(rules, signal);
    if (!lint.valid) throw new Error(`Correct the ${count(lint.errors.length, "error")} first, or save a draft.`);
    const done = await ask({
      title: "Publish these rules?", wide: true, action: "Publish",
      body: [lint.warnings.length > 0 && h("p", null, badge(count(lint.warnings.length, "warning"), "warn")), ruleDiff(difference),
        field("Comment", comment, "Why the rules change. The history keeps it."),
        h("p", { class: "muted small" }, "The Gateway starts with an empty cache under the new rules.")],
      run: () => publish(rules, ""),
    });
    if (done) finish();
  };

  /**
   * @param {any[]} rules
   * @param {string} confirmDeletes
   * @returns {Promise<void>}
   */
  const publish = async (rules, confirmDeletes) => {
    const body = { rules, seq: stored.seq, cacheBust: stored.cacheBust };
    try {
      await call("PUT /config/tenants/{tenant}/rules", { tenant, body, confirmDeletes, comment: comment.value });
    } catch (error) {
      const ids = removedWithMarkers(error);
      if (ids.length && !confirmDeletes && confirm(`These rules still have active markers: ${ids.join(", ")}. Remove them all the same?`)) {
        return publish(rules, ids.join(","));
      }
      if (error instanceof ApiError && error.status === 409) {
        throw new Error("Another user has published other rules meanwhile. Save your rules as a draft: it shows the conflicts.");
      }
      throw error;
    }
  };
  const finish = () => {
    editor.markSaved();
    notify("Published.");
    go(`/t/${tenant}/rules`);
  };
  const saveDraft = async () => {
    const rules = editor.read();
    if (!rules) throw new Error("The text is no JSON array. Correct it first.");
    const draft = await call("POST /config/tenants/{tenant}/rules/drafts", { tenant, body: { rules, baseSeq: stored.seq } });
    editor.markSaved();
    go(`/t/${tenant}/drafts/${draft.draftId}`);
  };
  return h("div", null,
    h("header", { class: "page-head" }, h("div", null, h("h1", null, mayWrite ? "Edit rules" : "Rules as JSON"),
      h("p", { class: "muted" }, a(to(tenant, "rules"), "Rules"), ` · from revision ${stored.seq}`)),
    mayWrite && h("div", { class: "row" }, button("Save as a draft", saveDraft), button("Review and publish", review, "primary"))),
    editor.element);
}

/** A field for the comment on a change, which the history keeps. */
export const commentInput = () => input("comment", "", { maxlength: 500, autocomplete: "off" });

/**
 * The rules that the service removes only when told so twice.
 * @param {unknown} error
 * @returns {string[]}
 */
export function removedWithMarkers(error) {
  const errors = /** @type {Contract.Finding[]} */ ((error instanceof ApiError && error.body?.errors) || []);
  const isMarker = (/** @type {Contract.Finding} */ one) => one.code === "rule-removed-active-marker" && one.ruleId;
  return errors.length && errors.every(isMarker) ? errors.map((one) => String(one.ruleId)) : [];
}
