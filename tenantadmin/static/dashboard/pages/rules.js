// The rules in force with their figures. Changes are collected on the page, and published together.

import { call, hasStatus, rulesOf } from "../api.js";
import { lastChanges } from "../blame.js";
import { asSentence } from "../conditions.js";
import { changesIn, compareRules } from "../diff.js";
import { nothingYet } from "../firsthour.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { nameOf } from "../periods.js";
import { keepAsDraft, replayRules, reviewRules } from "../publish.js";
import { askForRule } from "../ruleform.js";
import { nameIn } from "../rulenames.js";
import {
  a,
  badge,
  beside,
  button,
  checkbox,
  code,
  facts,
  fill,
  h,
  pageHead,
  panel,
  revisionLink,
  ruleLink,
  showIn,
  to,
} from "../ui.js";

/** @type {Texts} */
export const ACTION = { cache: "good", bypass: "", deny: "bad", invalidate: "warn" };

/** @type {Show} */
export async function show(context) {
  const { tenant, query } = context;
  const wanted = query.get("rule");
  const [stored, did] = await Promise.all([rulesOf(tenant), activityOf(tenant)]);
  /** @type {Promise<Contract.RulesBlame> | undefined} */
  let reading;
  const blame = () => (reading ??= call("GET /config/tenants/{tenant}/rules/blame", { tenant }));
  const mayWrite = can(tenant, "write");
  const inForce = [...stored.rules];
  let rules = inForce;
  const [list, bar] = [h("div"), h("div.bar")];
  /** @type {Map<Contract.Rule, HTMLElement>} */
  const rows = new Map();

  const changes = () => changesIn(compareRules(inForce, rules));
  /**
   * @param {Contract.Rule[]} next
   * @param {string} [id] of the rule that has the focus
   * @param {string} [part]
   */
  const set = (next, id, part) => {
    rules = next;
    fill(
      list,
      rules.map((rule, index) => {
        const element = rows.get(rule) ?? row(rule);
        rows.set(rule, element);
        fill(/** @type {Element} */ (element.querySelector(".place")), index + 1);
        return element;
      }),
    );
    const number = changes();
    bar.hidden = !number;
    fill(
      bar,
      number > 0 && [
        h("strong.grow", { role: "status" }, `${f.count(number, "change")}, not published`),
        button("Discard", () => setAndLeave(inForce), "quiet"),
        button("Keep as a draft", () => keepAsDraft(context, stored, rules, done)),
        button("Replay", () => replayRules(context, stored, rules, done)),
        button("Review and publish", () => reviewRules(context, stored, rules, done), "primary"),
      ],
    );
    if (id)
      /** @type {HTMLElement | null} */ (
        list.querySelector(`[data-id="${CSS.escape(id)}"] ${part}`)
      )?.focus();
  };
  const done = () => set(inForce);
  /**
   * @param {Contract.Rule[]} next without the button that was pressed: the list's head gets the
   *   focus
   */
  const setAndLeave = (next) => {
    set(next);
    head?.focus();
  };
  /** @param {string} [id] */
  const edit = async (id = "") => {
    const made = (await askForRule(rules, id)) ?? rules;
    set(made, id || made.find((one) => !rules.includes(one))?.id, ".edit");
  };
  /** @param {Contract.Rule} rule @param {number} at */
  const move = (rule, at) => {
    const others = rules.filter((one) => one !== rule);
    if (at >= 0 && at !== rules.indexOf(rule) && at < rules.length)
      set([...others.slice(0, at), rule, ...others.slice(at)], rule.id, ".handle");
  };

  /** @param {Contract.Rule} rule */
  const row = (rule) => {
    const name = rule.name || rule.id;
    const isOn = rule.enabled !== false;
    const details = describe(
      tenant,
      inForce,
      rule,
      did,
      wanted === rule.id,
      blame,
      mayWrite &&
        button(
          "Remove the rule",
          () => setAndLeave(rules.filter((one) => one !== rule)),
          "danger small",
        ),
    );
    if (!mayWrite) return h("div.rule-row", details);
    const toggle = checkbox("enabled", isOn, {
      role: "switch",
      "aria-label": `${name} is on`,
      title: isOn ? "On: turn it off" : "Off: turn it on",
      onchange: () => {
        toggle.checked = isOn;
        set(
          rules.map((one) => (one === rule ? { ...rule, enabled: !isOn } : one)),
          rule.id,
          "[role=switch]",
        );
      },
    });
    const handle = h(
      "button.handle",
      {
        type: "button",
        "aria-label": `Move ${name}: arrow keys`,
        title: "Drag, or press ↑ or ↓",
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
          if (by) event.preventDefault();
          move(rule, rules.indexOf(rule) + (by ?? 0));
        },
      },
      "⠿",
    );
    const element = h(
      "div.rule-row.writable",
      { "data-id": rule.id },
      handle,
      details,
      h(
        "div.row.nowrap",
        toggle,
        h(
          "button.button.small.edit",
          { type: "button", "aria-label": `Edit ${name}`, onclick: () => edit(rule.id) },
          "Edit",
        ),
      ),
    );
    handle.addEventListener("pointerdown", () => {
      const dragging = new AbortController();
      const drop = () => {
        element.classList.remove("dragged");
        dragging.abort();
      };
      element.classList.add("dragged");
      addEventListener(
        "pointermove",
        ({ clientY }) =>
          move(
            rule,
            [...list.children].filter(
              (one) =>
                one !== element && one.getBoundingClientRect().top + one.clientHeight / 2 < clientY,
            ).length,
          ),
        dragging,
      );
      for (const end of ["pointerup", "pointercancel"]) addEventListener(end, drop, dragging);
    });
    return element;
  };
  list.addEventListener(
    "keydown",
    (event) => event.key === "Escape" && bar.querySelector("button")?.focus(),
  );
  const all = panel(
    "In order: the first enabled match decides",
    did && beside(did.days, did.note),
    h(
      "div",
      { class: `rule-row rule-heads ${mayWrite && "writable"}`, "aria-hidden": "true" },
      mayWrite && h("span"),
      h(
        "div.rule-grid",
        ["", "Rule", "Action", "Requests", "Hit rate", "Time saved"].map((name, index) =>
          h("span", { class: index > 2 && "num" }, name),
        ),
      ),
    ),
    list,
  );
  const head = all.querySelector("h2");
  head?.setAttribute("tabindex", "-1");
  set(rules);
  context.guard(() => changes() > 0);
  return h(
    "div",
    pageHead(
      "Rules",
      [
        `Revision ${stored.seq}, published ${f.ago(stored.modifiedAt)} · `,
        a(to(tenant, "history", { kind: "rules" }), "History"),
      ],
      mayWrite && [
        h("a.button", { href: to(tenant, "rules/edit") }, "Edit as JSON"),
        button("Add a rule", () => edit(), "primary"),
      ],
    ),
    wanted &&
      !inForce.some(({ id }) => id === wanted) &&
      (await gone(tenant, wanted, (rule) =>
        describe(tenant, inForce, rule, did, true, blame, null),
      )),
    rules.length
      ? all
      : nothingYet(
          tenant,
          "first-rule",
          "There are no rules yet: every request passes through.",
          "Rules stand here in their order, each with its hits and the time that it saved.",
        ),
    bar,
  );
}

/**
 * @param {string} tenant what each rule did lately, and what it saved, which comes later; nothing
 *   without the right to read it
 */
const activityOf = (tenant) =>
  call("GET /tenants/{tenant}/activity/rules", { tenant }).then(
    ({ from, to: last, rules }) => {
      const note = h("span");
      /** @type {Promise<Map<string | null, number>>} */
      const saved = call("GET /tenants/{tenant}/savings", {
        tenant,
        from,
        to: last,
        step: "day",
      }).then(
        (savings) => new Map(savings.rules.map((rule) => [rule.ruleId, rule.busyMs])),
        () => {
          fill(note, "; time saved is estimated from misses");
          return new Map(rules.map((rule) => [rule.ruleId, rule.warehouseTimeSavedMs]));
        },
      );
      return {
        days: nameOf(last, 28),
        note,
        saved,
        of: new Map(rules.map((rule) => [rule.ruleId, rule])),
      };
    },
    (error) => {
      if (hasStatus(error, 403)) return null;
      throw error;
    },
  );

/**
 * @param {string} tenant
 * @param {string} id of a rule that is not in force, to which something old leads
 * @param {(rule: Contract.Rule) => Child} show as it was
 */
async function gone(tenant, id, show) {
  const { changes } = await call("GET /config/tenants/{tenant}/rules/history", {
    tenant,
    limit: 200,
  });
  const last = changes.find(({ summary }) => summary.names?.removed?.includes(id));
  const said = h(
    "p.callout",
    "The rule ",
    h("strong", { title: id }, last?.summary.labels?.[id] ?? id),
    " is not in force",
    last && [": ", revisionLink(tenant, last.seq), " removed it"],
    ". ",
    last && "It was:",
  );
  if (!last) return said;
  const { document } = await call("GET /config/tenants/{tenant}/rules/history/{seq}", {
    tenant,
    seq: last.seq - 1,
  });
  return [
    said,
    h(
      "section.panel",
      document?.rules.filter((/** @type {Contract.Rule} */ one) => one.id === id).map(show),
    ),
  ];
}

/** @param {Contract.Rule} rule whose result may serve whom */
function sharedBy(rule) {
  if (!rule.varyBy) return "all users (the rule does not say)";
  return rule.varyBy.length
    ? ["requests with the same ", h("code", rule.varyBy.join(", "))]
    : "all users";
}

/**
 * @type
 *   {(tenant: string, inForce: Contract.Rule[], rule: Contract.Rule,
 *   did: Awaited<ReturnType<typeof activityOf>>, isOpen: boolean, blame: () =>
 *   Promise<Contract.RulesBlame>, acts: Child) => HTMLElement}
 */
function describe(tenant, inForce, rule, did, isOpen, blame, acts) {
  const effect = did?.of.get(rule.id);
  const [isCache, isOn] = [rule.action === "cache", rule.enabled !== false];
  const [requests, notCached] = [effect?.totalExecutions, effect?.notCached ?? 0];
  const others = (effect?.requests ?? 0) - (requests ?? 0);
  const rate =
    isCache && effect?.totalExecutions ? effect.cacheHits / effect.totalExecutions : null;
  const none = (/** @type {any} */ value) => ({ class: value == null ? "num none" : "num" });
  const [changed, saved] = [
    h("div"),
    h(
      "span",
      { ...none(isCache ? effect : null), "data-unit": "saved" },
      isCache && effect ? "…" : f.NONE,
    ),
  ];
  if (isCache && effect)
    did?.saved.then((of) => fill(saved, f.saving(f.duration(of.get(rule.id)))));
  const element = h(
    "details",
    { class: isOn ? "rule" : "rule off", open: isOpen, id: `rule-${rule.id}` },
    h(
      "summary.rule-grid",
      h("span.place"),
      h(
        "div",
        h("div.rule-name", rule.name || rule.id, !isOn && [" ", badge("off")]),
        h("div.rule-text", asSentence(rule.conditions)),
      ),
      h(
        "span",
        badge(
          isCache ? `cache ${f.span(rule.ttlSeconds)}` : rule.action,
          isOn ? ACTION[rule.action] : "",
        ),
      ),
      h(
        "div.figures",
        h(
          "span",
          { ...none(requests), "data-unit": "requests" },
          effect && rule.action === "deny" ? `${f.number(others)} refused` : f.number(requests),
        ),
        h(
          "span",
          { ...none(rate), "data-unit": "hits" },
          rate !== null && h("progress.meter", { max: 1, value: rate, "aria-label": "Hit rate" }),
          f.percent(rate),
        ),
        saved,
      ),
    ),
    h(
      "div.rule-more",
      rule.description && h("p", rule.description),
      facts([
        effect && [
          did?.days,
          `${f.count(effect.cacheHits, "hit")}, ${f.number(effect.cacheMisses - notCached)} misses, ${f.number(notCached)} not cached, ${f.number(others)} waited, failed or were refused, ${f.count(effect.queriesMatched, "statement")}`,
        ],
        effect && [
          "Last 7 days",
          [
            a(to(tenant, "traffic", { rule: rule.id }), "Its requests"),
            isCache && [
              " · ",
              a(to(tenant, "traffic", { rule: rule.id, status: "MISS" }), "Why it missed"),
            ],
          ],
        ],
        ["Id", h("code", rule.id)],
        isCache && ["Fresh for", f.span(rule.ttlSeconds)],
        isCache && ["Results are shared by", sharedBy(rule)],
        rule.staleWhileRevalidate && ["Then stale for", f.span(rule.staleWhileRevalidate)],
        rule.invalidateRules?.length && [
          "Invalidates",
          rule.invalidateRules.map((id, index) => [
            index > 0 && ", ",
            ruleLink(tenant, id, nameIn(inForce, id)),
          ]),
        ],
        rule.requireInvalidation && ["If markers fail", "the statement is refused"],
      ]),
      code(rule.conditions, "Conditions"),
      h(
        "div.row",
        isCache &&
          can(tenant, "cache") &&
          a(to(tenant, "invalidate", { rule: rule.id }), "Invalidate its results"),
        acts,
      ),
      acts !== null && [h("h3", "Last changed by"), changed],
    ),
  );
  element.addEventListener(
    "toggle",
    () => showIn(async () => lastChanges(tenant, rule.id, await blame()), changed),
    { once: true },
  );
  return element;
}
