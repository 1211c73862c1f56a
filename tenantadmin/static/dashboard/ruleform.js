// A form for one rule of any kind. What it has no field for stays as it is, and is listed.

import { asSentence } from "./conditions.js";
import { span } from "./format.js";
import { names } from "./forms.js";
import { area, ask, checkbox, field, fill, fine, h, input, select } from "./ui.js";

const NEW = "";
const UNITS = /** @type {[string, string][]} */ ([
  ["86400", "days"],
  ["3600", "hours"],
  ["60", "minutes"],
  ["1", "seconds"],
]);
const ACTIONS = {
  cache: "cache the result",
  bypass: "do not cache",
  deny: "refuse the statement",
  invalidate: "make results of other rules stale",
};
const [KEEP, SHARING] = ["keep", { userName: "only the user who asked", "": "every user" }];

/**
 * @type {Texts} conditions that have a field: lists with their operator, then flags with the value
 *   that the form writes
 */
const LISTS = { tables: "containsAny", userName: "in" };
/** @type {Record<string, boolean>} */
const FLAGS = { isReadOnly: true, hasNonDeterministicFunctions: false };
const DEFAULT = {
  name: "",
  action: "cache",
  ttlSeconds: 3600,
  varyBy: ["userName"],
  conditions: FLAGS,
};

/**
 * @param {string} key
 * @param {any} test
 * @returns {string[] | null} null: not what the form writes
 */
function listOf(key, test) {
  const keys = test && typeof test === "object" ? Object.keys(test) : [];
  const list = keys.length === 1 ? test[LISTS[key]] : null;
  return Array.isArray(list) && list.every((one) => typeof one === "string" && !/[,\n]/.test(one))
    ? list
    : null;
}

/** @param {any} rule its conditions that have no field */
const othersOf = (rule) =>
  Object.fromEntries(
    Object.entries(rule.conditions ?? {}).filter(([key, test]) =>
      key in LISTS ? !listOf(key, test) : test !== FLAGS[key],
    ),
  );

/** @param {any} rule */
const actionOf = (rule) => rule.action ?? (rule.invalidateRules ? "invalidate" : "cache");

/** @param {any} rule @param {string} action @returns {any} what of a rule lasts with an action */
function lasting(rule, action) {
  const { varyBy, staleWhileRevalidate, invalidateRules, requireInvalidation, ...others } = rule;
  return {
    ...others,
    ...(action === "cache" && varyBy && { varyBy }),
    ...(action === "cache" && staleWhileRevalidate && { staleWhileRevalidate }),
    ...(action === actionOf(rule) && {
      ...(invalidateRules && { invalidateRules }),
      ...(requireInvalidation !== undefined && { requireInvalidation }),
    }),
  };
}

/**
 * @param {any[]} rules
 * @param {any} rule
 * @param {string} place the rules with a new one before those that cache, or last
 */
function added(rules, rule, place) {
  const caching = rules.findIndex((it) => actionOf(it) === "cache");
  const at = place === "last" || caching < 0 ? rules.length : rule.action === "cache" ? caching : 0;
  return [...rules.slice(0, at), { id: freeId(rule.name, rules), ...rule }, ...rules.slice(at)];
}

/** @param {string} name @param {any[]} rules */
function freeId(name, rules) {
  const taken = new Set(rules.map((rule) => rule.id));
  const stem =
    name
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "-")
      .replace(/^-+|-+$/g, "")
      .slice(0, 100) || "rule";
  let id = stem;
  for (let count = 2; taken.has(id); count += 1) id = `${stem}-${count}`;
  return id;
}

/**
 * @type {(rules: any[], id?: string, begin?: string[]) => Promise<any[] | null>} the rules with it;
 *   null: cancelled. `id`: empty for a new one; absent: one chooses. `begin`: tables of a new one
 */
export async function askForRule(rules, id, begin = []) {
  const called = (/** @type {any} */ rule) => rule.name || rule.id;
  const which = select(
    "rule",
    [
      [NEW, "A new rule"],
      ...rules.map((rule) => /** @type {[string, string]} */ ([rule.id, called(rule)])),
    ],
    id ?? NEW,
  );
  const place = select(
    "place",
    [
      ["first", "before the rules that cache"],
      ["last", "after all others"],
    ],
    "first",
  );
  const name = input("name", "", { maxlength: 200, placeholder: "Orders of today" });
  const about = area("description", "", { rows: 2, placeholder: "Optional" });
  const action = select("action", ACTIONS, "cache");
  const tables = input("tables", "", { placeholder: "sales.orders, sales.lines" });
  const users = input("users", "", { placeholder: "ann@example.com, svc-reports" });
  const [reads, repeats] = [checkbox("reads", false), checkbox("repeats", false)];
  const amount = input("amount", "", {
    type: "number",
    min: 1,
    step: 1,
    "aria-label": "Fresh for",
  });
  const unit = select("unit", UNITS, "3600", { "aria-label": "Unit" });
  const [sharing, targets, kept] = [h("div"), h("div.choices"), h("div")];
  const fields = {
    tables: field(
      "For statements on these tables",
      tables,
      "Names or patterns such as sales.*, with commas. Empty: all tables.",
    ),
    users: field("Of these users", users, "With commas. Empty: all users."),
    reads: h("label.check", reads, "Only statements that read"),
    repeats: h("label.check", repeats, "Only without functions such as now()"),
    place: field("Place", place, "The first enabled rule that matches decides."),
    fresh: h(
      "div.field",
      h("span.label", "A result is fresh for"),
      h("div.row.nowrap", amount, unit),
    ),
    sharing,
    targets: h("fieldset", h("legend", "Makes results of these rules stale"), targets),
  };
  let rule = /** @type {any} */ (DEFAULT);
  const choice = () => /** @type {HTMLSelectElement} */ (sharing.querySelector("select")).value;
  const chosen = () =>
    [...targets.querySelectorAll("input")].filter((one) => one.checked).map((one) => one.value);
  const showFields = () => {
    const others = othersOf(rule);
    fields.fresh.hidden = fields.sharing.hidden = action.value !== "cache";
    fields.targets.hidden = action.value !== "invalidate";
    fields.place.hidden = which.value !== NEW;
    for (const [key, element] of Object.entries({
      tables: fields.tables,
      userName: fields.users,
      isReadOnly: fields.reads,
      hasNonDeterministicFunctions: fields.repeats,
    }))
      element.hidden = key in others;
    const { staleWhileRevalidate, invalidateRules, requireInvalidation } = lasting(
      rule,
      action.value,
    );
    const stays = [
      Object.keys(others).length > 0 && [
        "It also applies only if: ",
        h("strong", asSentence(others)),
      ],
      staleWhileRevalidate &&
        `Then a result is served stale for ${span(staleWhileRevalidate)} while a fresh one is fetched.`,
      action.value !== "invalidate" &&
        invalidateRules?.length > 0 && [
          "It makes results of these rules stale: ",
          h("strong", invalidateRules.join(", ")),
        ],
      requireInvalidation && "The statement is refused if the results cannot be marked as stale.",
    ].filter(Boolean);
    fill(
      kept,
      stays.length > 0 &&
        h(
          "div.callout",
          h("p.strong", "This form has no field for the rest of the rule. It stays as it is:"),
          stays.map((one) => h("p.small", one)),
          fine("Change it as JSON."),
        ),
    );
  };
  const fillIn = () => {
    rule = rules.find((one) => one.id === which.value) ?? {
      ...DEFAULT,
      ...(begin.length && {
        name: `Reads of ${begin.join(", ")}`.slice(0, 200),
        conditions: { ...FLAGS, tables: { containsAny: begin } },
      }),
    };
    const { conditions = {}, ttlSeconds = 86_400, varyBy = [] } = rule;
    [name.value, about.value] = [rule.name ?? "", rule.description ?? ""];
    action.value = actionOf(rule);
    [tables.value, users.value] = ["tables", "userName"].map((key) =>
      (listOf(key, conditions[key]) ?? []).join(", "),
    );
    [reads.checked, repeats.checked] = [
      conditions.isReadOnly === true,
      conditions.hasNonDeterministicFunctions === false,
    ];
    unit.value = UNITS.find(([seconds]) => ttlSeconds % Number(seconds) === 0)?.[0] ?? "1";
    amount.value = String(ttlSeconds / Number(unit.value));
    const isOther = varyBy.length > 1 || !["userName", undefined].includes(varyBy[0]);
    fill(
      sharing,
      field(
        "A result serves",
        select(
          "sharing",
          { ...SHARING, ...(isOther && { [KEEP]: `requests with the same ${varyBy.join(", ")}` }) },
          isOther ? KEEP : (varyBy[0] ?? ""),
        ),
        "Choose one user if the warehouse shows each user other rows or columns.",
      ),
    );
    fill(
      targets,
      rules
        .filter((one) => actionOf(one) === "cache")
        .map((one) =>
          h(
            "label.check",
            checkbox("stale", Boolean(rule.invalidateRules?.includes(one.id)), { value: one.id }),
            called(one),
          ),
        ),
    );
    showFields();
  };
  which.addEventListener("change", fillIn);
  action.addEventListener("change", showFields);
  fillIn();
  /** @type {any[] | null} */
  let made = null;
  await ask({
    title: id
      ? `Edit the rule “${called(rule)}”`
      : id === NEW
        ? "Add a rule"
        : "Add or edit a rule",
    action: "Apply",
    wide: true,
    beside: fine("Nothing is published yet. You review all changes first."),
    body: [
      h(
        "div.form",
        id === undefined && field("Rule", which),
        field("Name", name),
        fields.tables,
        fields.users,
        field("Then", action),
        fields.fresh,
        fields.sharing,
        fields.place,
        h("div", fields.reads, fields.repeats),
        field("Description", about),
        fields.targets,
      ),
      kept,
    ],
    run: () => {
      const seconds = Math.round(Number(amount.value) * Number(unit.value));
      const isCache = action.value === "cache";
      if (!name.value.trim()) throw new Error("Give the rule a name.");
      if (isCache && !(seconds >= 1))
        throw new Error("Say for how long a result is fresh: one second or more.");
      if (action.value === "invalidate" && !chosen().length)
        throw new Error("Choose the rules whose results become stale.");
      const [ofTables, ofUsers] = [names(tables.value), names(users.value)];
      // Keys keep their order, in which the rule is told.
      const conditions = Object.fromEntries(
        Object.entries({
          ...(which.value && rule.conditions),
          tables: ofTables.length ? { containsAny: ofTables } : null,
          userName: ofUsers.length ? { in: ofUsers } : null,
          isReadOnly: reads.checked || null,
          hasNonDeterministicFunctions: repeats.checked ? false : null,
          ...othersOf(rule),
        }).filter(([, test]) => test !== null),
      );
      const { description, ...before } = lasting(rule, action.value);
      const after = {
        ...before,
        name: name.value.trim(),
        ...(about.value.trim() && { description: about.value.trim() }),
        action: action.value,
        conditions,
        ...(isCache && { ttlSeconds: seconds }),
        ...(isCache && choice() !== KEEP && { varyBy: choice() ? [choice()] : [] }),
        ...(action.value === "invalidate" && { invalidateRules: chosen() }),
      };
      made =
        which.value === NEW
          ? added(rules, after, place.value)
          : rules.map((one) => (one === rule ? after : one));
    },
  });
  return made;
}
