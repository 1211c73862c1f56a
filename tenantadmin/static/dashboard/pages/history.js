// The revisions of rules and configuration: what each changed, compare, restore.

import { call } from "../api.js";
import { changesIn, fieldDiff, ruleDiff } from "../diff.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { askToPublish, restore, startReplay } from "../publish.js";
import { validate } from "../ruleset.js";
import {
  badge,
  beside,
  button,
  code,
  fill,
  h,
  nextOf,
  pageHead,
  panel,
  showIn,
  tabs,
  to,
} from "../ui.js";

/** @typedef {"rules" | "config"} Kind */

/** @type {Show} */
export async function show(context) {
  const { tenant, query } = context;
  const kind = query.get("kind") === "config" ? "config" : "rules";
  const page = await load(tenant, kind);
  const detail = h("div");
  const seq = query.get("seq");
  // An old revision is not on the first page of the list.
  const wanted =
    page.changes.find((one) => String(one.seq) === seq) ??
    (seq === null ? page.changes[0] : await readRevision(tenant, kind, Number(seq)));
  /** @type {Contract.Change[]} */
  const listed = [];
  const list = h("ul.findings", { "aria-label": "Revisions" });
  const choose = (/** @type {Contract.Change} */ change) => {
    context.address(to(tenant, "history", { kind, seq: change.seq }));
    for (const entry of list.children)
      entry.classList.toggle("chosen", entry.id === `seq-${change.seq}`);
    showRevision(context, kind, change, listed, detail);
  };
  const isInForce = (/** @type {Contract.Change} */ change) =>
    change.seq === page.changes[0].seq && change.action !== "delete";
  const more = h("div.more");
  const add = (/** @type {Contract.ChangeHistoryPage} */ last) => {
    listed.push(...last.changes);
    list.append(
      ...last.changes.map((change) =>
        h(
          "li",
          { id: `seq-${change.seq}` },
          h(
            "button",
            { type: "button", onclick: () => choose(change) },
            h(
              "div.row",
              h("strong", `Revision ${change.seq}`),
              isInForce(change) && badge("in force", "good"),
              beside(f.ago(change.changedAt)),
            ),
            h("div.does", change.text),
            change.summary.comment && h("div", `“${change.summary.comment}”`),
            h("div.muted.small", change.userId),
          ),
        ),
      ),
    );
    const cursor = nextOf(last);
    fill(
      more,
      cursor && button("Older revisions", async () => add(await load(tenant, kind, cursor))),
    );
  };
  add(page);
  if (wanted) choose(wanted);
  return h(
    "div",
    pageHead("History"),
    tabs([
      [to(tenant, "history", { kind: "rules" }), "Rules", kind === "rules"],
      [to(tenant, "history", { kind: "config" }), "Configuration", kind === "config"],
    ]),
    h("div.split.left", panel("Revisions", null, list, more), detail),
  );
}

/** @param {string} tenant @param {Kind} kind @param {string} [cursor] */
const load = (tenant, kind, cursor) =>
  call(
    /** @type {"GET /config/tenants/{tenant}/rules/history"} */ (
      `GET /config/tenants/{tenant}/${kind}/history`
    ),
    { tenant, cursor },
  );

/** @param {string} tenant @param {Kind} kind @param {number} seq */
const readRevision = (tenant, kind, seq) =>
  call(
    /** @type {"GET /config/tenants/{tenant}/rules/history/{seq}"} */ (
      `GET /config/tenants/{tenant}/${kind}/history/{seq}`
    ),
    { tenant, seq },
  );

/**
 * @param {Context} context
 * @param {Kind} kind
 * @param {Contract.Change} change
 * @param {Contract.Change[]} listed the revisions that are listed, newest first
 * @param {HTMLElement} detail
 */
function showRevision(context, kind, change, listed, detail) {
  const { tenant } = context;
  const { seq } = change;
  const newest = listed[0].seq;
  const read = () => readRevision(tenant, kind, seq);
  const difference = async (/** @type {number} */ from, /** @type {number} */ last) => {
    const range = { tenant, from, to: last };
    if (kind === "rules") {
      const found = await call("GET /config/tenants/{tenant}/rules/history/diff", range);
      return { isSame: !changesIn(found), shown: ruleDiff(found) };
    }
    const { inWords } = await call("GET /config/tenants/{tenant}/config/history/diff", range);
    return { isSame: !inWords?.length, shown: fieldDiff(inWords) };
  };
  const ask = async () => {
    const [{ shown }, { document: after, inForce }] = await Promise.all([
      difference(newest, seq),
      read(),
    ]);
    await askToPublish({
      context,
      kind,
      title: `Restore revision ${seq}?`,
      action: "Restore",
      difference: shown,
      lint: kind === "rules" ? await validate(after?.rules) : null,
      rules: after?.rules,
      warning: h(
        "p",
        `Revision ${seq} was ${inForce}. It is checked again, and becomes revision ${newest + 1}.`,
      ),
      isReplayOf: ({ subject }) =>
        subject.seq === seq || subject.draftId === (change.summary.draft?.draftId ?? ""),
      replay: () => startReplay(context, { seq }),
      run: (comment) => restore(tenant, kind, seq, comment),
      then: () => {
        context.address(to(tenant, "history", { kind }));
        context.reload();
      },
    });
  };
  return showIn(async () => {
    const isNewest = seq === newest;
    const [own, later] = await Promise.all([
      seq > 0 && difference(seq - 1, seq),
      !isNewest && change.action !== "delete" && difference(newest, seq),
    ]);
    const body = h("div", own ? own.shown : h("p.pad.muted", "This is the first revision."));
    const against = h(
      "select",
      {
        "aria-label": "Compare with",
        onchange: () =>
          showIn(
            async () =>
              against.value
                ? (await difference(seq, Number(against.value))).shown
                : own && own.shown,
            body,
          ),
      },
      own && h("option", { value: "" }, "What it changed"),
      !isNewest &&
        h("option", { value: newest }, `What has changed since, up to revision ${newest}`),
      listed
        .filter((one) => one.seq !== seq && one.seq !== newest)
        .map((one) => h("option", { value: one.seq }, `From this to revision ${one.seq}`)),
    );
    const text = h("div");
    const whole = h("details.pad", h("summary.muted.small", "The whole document"), text);
    whole.addEventListener(
      "toggle",
      () => showIn(async () => code((await read()).document), text),
      { once: true },
    );
    // Restoring a revision that equals the live document would only empty the cache.
    return panel(
      `Revision ${seq}`,
      [
        isNewest
          ? badge("in force", "good")
          : later && later.isSame && badge("same as in force", "good"),
        own && listed.length > 1 && against,
        later && !later.isSame && can(tenant, "write") && button("Restore", ask),
      ],
      h("p.pad.muted", `By ${change.userId}, ${f.when(change.changedAt)}`),
      change.summary.comment && h("p.pad", `“${change.summary.comment}”`),
      body,
      whole,
    );
  }, detail);
}
