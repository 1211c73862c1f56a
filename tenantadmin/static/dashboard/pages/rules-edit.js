// Edit the rules in force: lint as one types, a look at the difference, publish.

import { call, hasStatus } from "../api.js";
import { compareRules, isSame, ruleDiff } from "../diff.js";
import { count } from "../format.js";
import { EMPTIES, commentInput } from "../forms.js";
import { can } from "../people.js";
import { publishing, rulesetEditor, validate } from "../ruleset.js";
import { a, ask, button, fine, go, h, lintBadges, notify, pageHead, to } from "../ui.js";

/** @type {Show} */
export async function show(context) {
  const { tenant, signal } = context;
  const stored = await call("GET /config/tenants/{tenant}/rules", { tenant });
  const mayWrite = can(tenant, "write");
  const editor = await rulesetEditor({ rules: stored.rules, label: "Rules as JSON", context, readOnly: !mayWrite, begin: context.query.get("tables")?.split(",") });

  const comment = commentInput();
  const review = async () => {
    const rules = editor.read();
    const difference = compareRules(stored.rules, rules);
    if (isSame(difference)) throw new Error("Nothing differs from the rules in force.");
    const lint = await validate(rules, signal);
    if (!lint.valid) throw new Error(`Correct the ${count(lint.errors.length, "error")} first, or save a draft.`);
    await ask({
      title: "Publish these rules?", wide: true, action: "Publish",
      body: [lint.warnings.length > 0 && h("p", lintBadges(0, lint.warnings.length)), ruleDiff(difference), comment.field,
        fine(EMPTIES)],
      run: async () => {
        try {
          await publishing((confirmDeletes) => call("PUT /config/tenants/{tenant}/rules", { tenant, confirmDeletes, comment: comment.value(),
            body: { rules, seq: stored.seq, cacheBust: stored.cacheBust } }));
        } catch (error) {
          throw hasStatus(error, 409) ? new Error("Another user has published other rules meanwhile. Save your rules as a draft: it shows the conflicts.") : error;
        }
      },
      then: () => {
        editor.markSaved();
        notify("Published.");
        go(to(tenant, "rules"));
      },
    });
  };
  const saveDraft = async () => {
    const draft = await call("POST /config/tenants/{tenant}/rules/drafts", { tenant, body: { rules: editor.read(), baseSeq: stored.seq } });
    editor.markSaved();
    go(to(tenant, `drafts/${draft.draftId}`));
  };
  return h("div",
    pageHead(mayWrite ? "Edit rules" : "Rules as JSON", [a(to(tenant, "rules"), "Rules"), ` · from revision ${stored.seq}`],
      mayWrite && [button("Save as a draft", saveDraft), button("Review and publish", review, "primary")]),
    editor.element);
}
