// One draft: edit, compare, replay, publish.

import { call, callWithTag, hasStatus } from "../api.js";
import { ruleDiff } from "../diff.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { askToPublish, publishing, startReplay } from "../publish.js";
import { rulesetEditor } from "../ruleset.js";
import {
  a,
  ask,
  badge,
  button,
  empty,
  field,
  fill,
  h,
  input,
  notify,
  pageHead,
  panel,
  to,
} from "../ui.js";
import { listReplays } from "./drafts.js";

/** @type {Show} */
export async function show(context) {
  const {
    tenant,
    params: { draft },
  } = context;
  const path = { tenant, draft };
  const found = await callWithTag("GET /config/tenants/{tenant}/rules/drafts/{draft}", path).catch(
    (error) => {
      if (!hasStatus(error, 404)) throw error;
    },
  );
  if (!found)
    return empty(
      "This draft was published or deleted.",
      h("p", a(to(tenant, "history"), "History")),
    );
  let { data: stored, etag } = found;
  const mayWrite = can(tenant, "write");
  const editor = await rulesetEditor({
    rules: stored.rules,
    label: "Rules of the draft as JSON",
    context,
    readOnly: !mayWrite,
  });
  const name = input("name", stored.name, {
    readonly: !mayWrite,
    "aria-label": "Name of the draft",
    placeholder: "Named by what it changes",
    maxlength: 100,
  });
  const base = h("span", `made from revision ${stored.baseSeq}`);

  const isDirty = () => editor.isChanged() || name.value !== stored.name;
  /** @param {number} [baseSeq] */
  const save = async (baseSeq) => {
    const rules = editor.read();
    if (!isDirty() && baseSeq === undefined) return;
    try {
      ({ data: stored, etag } = await callWithTag(
        "PUT /config/tenants/{tenant}/rules/drafts/{draft}",
        { ...path, body: { rules, name: name.value, ...(baseSeq !== undefined && { baseSeq }) } },
        { ifMatch: etag },
      ));
    } catch (error) {
      if (hasStatus(error, 409))
        throw new Error("Another user has changed this draft. Reload the page to see it.");
      throw error;
    }
    editor.markSaved();
    if (!name.value.trim()) name.value = stored.name;
    fill(base, `made from revision ${stored.baseSeq}`);
  };

  const replaysOf = async () =>
    (await call("GET /tenants/{tenant}/replays", { tenant })).replays.filter(
      (one) => one.subject.draftId === draft,
    );
  const changes = h("div");
  const compare = async () => {
    const difference = await call("GET /config/tenants/{tenant}/rules/drafts/{draft}/diff", path);
    fill(changes, ruleDiff(difference, difference.conflicts));
    return difference;
  };
  const review = async () => {
    await save();
    const difference = await compare();
    const isBehind = difference.from !== difference.baseSeq;
    await askToPublish({
      context,
      title: "Publish this draft?",
      action: isBehind ? `Publish over revision ${difference.from}` : "Publish",
      lint: stored.lint,
      rules: stored.rules,
      touched: [...difference.added, ...difference.changed].map((one) => one.id),
      isReplayOf: (one) =>
        one.subject.draftId === draft &&
        Date.parse(one.requestedAt) >= Date.parse(stored.modifiedAt),
      replay: () => startReplay(context, { draftId: draft }),
      warning:
        isBehind &&
        h(
          "div.callout.warn",
          h(
            "p",
            `The rules are at revision ${difference.from} by now; the draft was made from revision ${difference.baseSeq}. `,
            difference.conflicts.length
              ? `Other users have changed ${difference.conflicts.length} of the same rules.`
              : "No other user has changed the same rules.",
            " Publishing makes the rules what the draft says.",
          ),
        ),
      difference: ruleDiff(difference, difference.conflicts),
      run: async (comment) => {
        if (isBehind) await save(difference.from);
        return publishing(tenant, (confirmDeletes) =>
          call("POST /config/tenants/{tenant}/rules/drafts/{draft}/publish", {
            ...path,
            confirmDeletes,
            comment,
          }),
        );
      },
      then: () => context.go(to(tenant, "rules")),
    });
  };

  /** @param {number} seq the revision in force */
  const rebase = async (seq) => {
    await save();
    const operation = "POST /config/tenants/{tenant}/rules/drafts/{draft}/rebase";
    await callWithTag(operation, path, { ifMatch: etag });
    notify(`Rebased onto revision ${seq}. The rules in force stay as they are.`);
    context.reload();
  };
  const replay = async () => {
    await save();
    const last = f.yesterday();
    const from = input("from", f.addDays(last, -6), { type: "date", max: last });
    const until = input("to", last, { type: "date", max: last });
    await ask({
      title: "Replay this draft",
      action: "Replay",
      body: [
        h(
          "p.muted",
          "Computes what these rules would have done with the requests of the days, beside the rules that were in force.",
        ),
        h("div.form", field("First day", from), field("Last day", until)),
      ],
      run: () => startReplay(context, { draftId: draft, from: from.value, to: until.value }),
    });
  };
  context.guard(() => mayWrite && isDirty());
  context.title(stored.name || "Draft");
  const [replays, difference] = await Promise.all([replaysOf(), compare()]);
  const { from: current, baseSeq, conflicts } = difference;
  const open = context.query.get("open");
  if (mayWrite && open) context.later(open === "replay" ? replay : review);
  context.later(() => editor.point(context.query.get("rule"), "Kept as a draft"));
  return h(
    "div",
    pageHead(
      h("div.row", h("h1.hidden", "Draft"), name, badge("draft", "info")),
      [a(to(tenant, "drafts"), "Drafts"), " · ", base],
      mayWrite && [
        button("Save", async () => {
          await save();
          await compare();
          notify("Saved.");
        }),
        button("Replay", replay),
        button("Review and publish", review, "primary"),
      ],
    ),
    current !== baseSeq &&
      h(
        "div.callout.warn",
        `The rules are at revision ${current} by now; the draft was made from revision ${baseSeq}. Rebasing applies what the draft changes to revision ${current}. `,
        conflicts.length > 0 &&
          `Both changed ${f.count(conflicts.length, "rule")}, which stay as the draft has them. `,
        mayWrite && button(`Rebase onto revision ${current}`, () => rebase(current), "small"),
      ),
    editor.element,
    panel("What it changes in the live rules", null, changes),
    listReplays(tenant, replays),
  );
}
