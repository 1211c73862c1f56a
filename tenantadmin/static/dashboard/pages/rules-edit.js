// Edit the rules in force as JSON: lint as one types, a look at the difference, publish.

import { rulesOf } from "../api.js";
import { can } from "../people.js";
import { keepAsDraft, reviewRules } from "../publish.js";
import { rulesetEditor } from "../ruleset.js";
import { a, button, h, pageHead, to } from "../ui.js";

/** @type {Show} */
export async function show(context) {
  const { tenant } = context;
  const stored = await rulesOf(tenant);
  const mayWrite = can(tenant, "write");
  const editor = await rulesetEditor({
    rules: stored.rules,
    label: "Rules as JSON",
    context,
    readOnly: !mayWrite,
    begin: context.query.get("tables")?.split(","),
  });
  return h(
    "div",
    pageHead(
      mayWrite ? "Edit rules" : "Rules as JSON",
      [a(to(tenant, "rules"), "Rules"), ` · from revision ${stored.seq}`],
      mayWrite && [
        button("Keep as a draft", () =>
          keepAsDraft(context, stored, editor.read(), editor.markSaved),
        ),
        button(
          "Review and publish",
          () => reviewRules(context, stored, editor.read(), editor.markSaved),
          "primary",
        ),
      ],
    ),
    editor.element,
  );
}
