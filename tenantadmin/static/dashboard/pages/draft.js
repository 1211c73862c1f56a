// One draft: edit, compare, replay, publish.

import { call, callWithTag, hasStatus } from "../api.js";
import { ruleDiff } from "../diff.js";
import * as f from "../format.js";
import { EMPTIES, commentInput } from "../forms.js";
import { can } from "../people.js";
import { publishing, rulesetEditor } from "../ruleset.js";
import { a, ask, badge, button, empty, field, fill, fine, go, h, input, notify, pageHead, to } from "../ui.js";
import { listReplays } from "./drafts.js";
import { outcome, publishCost } from "./replay.js";

/** @type {Show} */
export async function show(context) {
  const { tenant, params: { draft } } = context;
  const path = { tenant, draft };
  const found = await callWithTag("GET /config/tenants/{tenant}/rules/drafts/{draft}", path).catch((error) => {
    if (!hasStatus(error, 404)) throw error;
  });
  if (!found) return empty("This draft was published or deleted.", h("p", a(to(tenant, "history"), "History")));
  let { data: stored, etag } = found;
  const mayWrite = can(tenant, "write");
  const editor = await rulesetEditor({ rules: stored.rules, label: "Rules of the draft as JSON", context, readOnly: !mayWrite });
  const name = input("name", stored.name, { readonly: !mayWrite, "aria-label": "Name of the draft", placeholder: "Untitled", maxlength: 100 });
  const base = h("span", `of revision #${stored.baseSeq}`);

  /** @param {number} [baseSeq] */
  const save = async (baseSeq) => {
    const rules = editor.read();
    if (!editor.isChanged() && name.value === stored.name && baseSeq === undefined) return;
    try {
      ({ data: stored, etag } = await callWithTag("PUT /config/tenants/{tenant}/rules/drafts/{draft}",
        { ...path, body: { rules, name: name.value, ...(baseSeq !== undefined && { baseSeq }) } }, { ifMatch: etag }));
    } catch (error) {
      if (hasStatus(error, 409)) throw new Error("Another user has changed this draft. Reload the page to see it.");
      throw error;
    }
    editor.markSaved();
    fill(base, `of revision #${stored.baseSeq}`);
  };

  const comment = commentInput();
  const replaysOf = async () => (await call("GET /tenants/{tenant}/replays", { tenant })).replays.filter((one) => one.subject.draftId === draft);
  /** What the last replay of the present text says. */
  const predicted = async () => {
    const last = (await replaysOf()).find((one) => one.state === "done" && Date.parse(one.requestedAt) >= Date.parse(stored.modifiedAt));
    if (!last) return h("div.callout", "This draft was not replayed as it is now, so it is not known what it does.");
    const run = await call("GET /tenants/{tenant}/replays/{replayId}", { tenant, replayId: last.replayId });
    return [...outcome(run), publishCost(run)];
  };

  const review = async () => {
    await save();
    const [difference, figures] = await Promise.all([call("GET /config/tenants/{tenant}/rules/drafts/{draft}/diff", path), predicted()]);
    const isBehind = difference.from !== difference.baseSeq;
    await ask({
      title: "Publish this draft?", wide: true, action: isBehind ? `Publish over revision #${difference.from}` : "Publish",
      body: [isBehind && h("div.callout.warn", h("p", `The rules are at revision #${difference.from} by now; the draft was made of #${difference.baseSeq}. `,
        difference.conflicts.length ? `Other users have changed ${difference.conflicts.length} of the same rules.` : "No other user has changed the same rules.",
        " Publishing makes the rules what the draft says.")),
      ruleDiff(difference, difference.conflicts), figures, comment.field, fine(EMPTIES)],
      run: async () => {
        if (isBehind) await save(difference.from);
        await publishing((confirmDeletes) => call("POST /config/tenants/{tenant}/rules/drafts/{draft}/publish", { ...path, confirmDeletes, comment: comment.value() }));
      },
      then: () => {
        notify("Published. The draft is gone.");
        go(to(tenant, "rules"));
      },
    });
  };

  const replay = async () => {
    await save();
    const last = f.yesterday();
    const from = input("from", f.addDays(last, -6), { type: "date", max: last });
    const until = input("to", last, { type: "date", max: last });
    await ask({
      title: "Replay this draft", action: "Replay",
      body: [h("p.muted", "Computes what these rules would have done with the requests of the days, beside the rules that were in force."),
        h("div.form", field("First day", from), field("Last day", until))],
      run: async () => {
        const { replayId } = await call("POST /tenants/{tenant}/replays", { tenant, body: { draftId: draft, from: from.value, to: until.value } });
        go(to(tenant, `replays/${replayId}`));
      },
    });
  };
  const isDirty = () => editor.isChanged() || name.value !== stored.name;
  context.guard(() => mayWrite && isDirty());
  context.title(stored.name || "Draft");
  if (mayWrite && context.query.has("review")) setTimeout(review);
  return h("div",
    pageHead(h("div.row", h("h1.hidden", "Draft"), name, badge("draft", "info")), [a(to(tenant, "drafts"), "Drafts"), " · ", base],
      mayWrite && [button("Save", async () => { await save(); notify("Saved."); }), button("Replay", replay), button("Review and publish", review, "primary")]),
    editor.element, listReplays(tenant, await replaysOf()));
}
