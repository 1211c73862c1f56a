// A form for simple rules. Rules with other conditions are edited as JSON.

import { names } from "./forms.js";
import { ask, field, h, input, select } from "./ui.js";

const NEW = "";
const UNITS = /** @type {[string, string][]} */ ([["86400", "days"], ["3600", "hours"], ["60", "minutes"], ["1", "seconds"]]);
const ACTIONS = { cache: "cache the result", bypass: "do not cache", deny: "refuse the statement" };
const KEEP = "keep";
const SHARING = { userName: "one user, by name", "": "everybody", [KEEP]: "as the text says" };
const DEFAULT = { name: "", action: "cache", ttlSeconds: 3600, varyBy: ["userName"], conditions: { isReadOnly: true, hasNonDeterministicFunctions: false } };

/** @param {any} test @param {string} operator @returns {string[] | null} null: not what the form writes */
function listOf(test, operator) {
  if (test === undefined) return [];
  const keys = test && typeof test === "object" ? Object.keys(test) : [];
  const list = keys.length === 1 ? test[operator] : null;
  return Array.isArray(list) && list.every((one) => typeof one === "string" && !/[,\n]/.test(one)) ? list : null;
}

/** @param {any} rule whether the form can show all of its conditions */
function isSimple(rule) {
  const { tables, userName, isReadOnly, hasNonDeterministicFunctions, ...others } = rule?.conditions ?? {};
  return (rule?.action ?? "cache") in ACTIONS && !Object.keys(others).length && (isReadOnly ?? true) === true && (hasNonDeterministicFunctions ?? false) === false
    && listOf(tables, "containsAny") !== null && listOf(userName, "in") !== null;
}

/**
 * The rules with one added before those that cache or last, or changed at its place. Members that the form does not show stay.
 * @param {any[]} rules
 * @param {{id: string, place: string, name: string, action: string, tables: string[], users: string[], reads: boolean, repeats: boolean, seconds: number, sharing: string}} given
 */
function withRule(rules, { id, place, name, action, tables, users, reads, repeats, seconds, sharing }) {
  const conditions = { ...(tables.length && { tables: { containsAny: tables } }), ...(users.length && { userName: { in: users } }), ...(reads && { isReadOnly: true }), ...(repeats && { hasNonDeterministicFunctions: false }) };
  const made = { name, action, conditions, ...(action === "cache" && { ttlSeconds: seconds }),
    ...(action === "cache" && sharing !== KEEP && { varyBy: sharing ? [sharing] : [] }) };
  if (id !== NEW) return rules.map((rule) => (rule.id === id ? { ...withoutSharing(rule, action), ...made } : rule));
  const rule = { id: freeId(name, rules), ...made };
  const caching = rules.findIndex((it) => (it.action ?? "cache") === "cache");
  const at = place === "last" || caching < 0 ? rules.length : action === "cache" ? caching : 0;
  return [...rules.slice(0, at), rule, ...rules.slice(at)];
}

/** @param {any} rule @param {string} action only cache rules have results to share */
function withoutSharing({ varyBy, ...rule }, action) {
  return action === "cache" && varyBy ? { ...rule, varyBy } : rule;
}

/** @param {string} name @param {any[]} rules */
function freeId(name, rules) {
  const taken = new Set(rules.map((rule) => rule.id));
  const stem = name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 100) || "rule";
  let id = stem;
  for (let count = 2; taken.has(id); count += 1) id = `${stem}-${count}`;
  return id;
}

/**
 * Ask for a rule in a dialog.
 * @param {any[]} rules
 * @param {string[]} begin tables of a new rule
 * @returns {Promise<any[] | null>} the rules with it; null: cancelled
 */
export async function askForRule(rules, begin = []) {
  const simple = rules.filter(isSimple);
  const which = select("rule", [[NEW, "A new rule"], ...simple.map((rule) => /** @type {[string, string]} */ ([rule.id, rule.name || rule.id]))], NEW);
  const place = select("place", [["first", "before the rules that cache"], ["last", "after all others"]], "first");
  const name = input("name", "", { maxlength: 200, placeholder: "Orders of today" });
  const action = select("action", ACTIONS, "cache");
  const tables = input("tables", "", { placeholder: "sales.orders, sales.lines" });
  const users = input("users", "", { placeholder: "everybody" });
  const [reads, repeats] = ["reads", "repeats"].map((one) => h("input", { type: "checkbox", name: one }));
  const amount = input("amount", "", { type: "number", min: 1, step: 1, "aria-label": "Fresh for" });
  const unit = select("unit", UNITS, "3600", { "aria-label": "Unit" });
  const sharing = select("sharing", SHARING, "userName");
  const sharingField = field("A result serves", sharing, "One user, if the warehouse shows each user other rows or columns.");
  const [placeField, freshField] = [field("Place", place, "The first enabled rule that matches decides."), h("div.field", h("span.label", "Fresh for"), h("div.row.nowrap", amount, unit))];
  const fillIn = () => {
    const rule = simple.find((one) => one.id === which.value) ?? { ...DEFAULT, ...(begin.length && { name: `Reads of ${begin.join(", ")}`.slice(0, 200), conditions: { ...DEFAULT.conditions, tables: { containsAny: begin } } }) };
    const { conditions = {}, ttlSeconds = 86_400 } = rule;
    name.value = rule.name ?? "";
    action.value = rule.action ?? "cache";
    tables.value = (listOf(conditions.tables, "containsAny") ?? []).join(", ");
    users.value = (listOf(conditions.userName, "in") ?? []).join(", ");
    reads.checked = conditions.isReadOnly === true;
    repeats.checked = conditions.hasNonDeterministicFunctions === false;
    unit.value = UNITS.find(([seconds]) => ttlSeconds % Number(seconds) === 0)?.[0] ?? "1";
    amount.value = String(ttlSeconds / Number(unit.value));
    placeField.hidden = which.value !== NEW;
    sharing.value = !rule.varyBy || rule.varyBy.length > 1 || !["userName", undefined].includes(rule.varyBy[0]) ? KEEP : rule.varyBy[0] ?? "";
    freshField.hidden = sharingField.hidden = action.value !== "cache";
  };
  which.addEventListener("change", fillIn);
  action.addEventListener("change", () => { freshField.hidden = sharingField.hidden = action.value !== "cache"; });
  fillIn();
  /** @type {any[] | null} */
  let made = null;
  await ask({
    title: "A rule by form", action: "Put into the text", wide: true,
    body: h("div.form", field("Rule", which, simple.length < rules.length ? `Others with more conditions: ${rules.length - simple.length}. They are only in the text.` : ""), field("Name", name),
      field("Of these tables", tables, "Names, separated by commas. None: any table."), field("For these users", users, "None: everybody."),
      field("Then", action), freshField, sharingField, placeField, h("div", h("label.check", reads, "Only statements that read"),
        h("label.check", repeats, "Without functions such as now()"))),
    run: () => {
      const seconds = Math.round(Number(amount.value) * Number(unit.value));
      if (!name.value.trim()) throw new Error("Give the rule a name.");
      if (action.value === "cache" && !(seconds >= 1)) throw new Error("Say for how long a result is fresh: one second or more.");
      made = withRule(rules, { id: which.value, place: place.value, name: name.value.trim(), action: action.value, tables: names(tables.value),
        users: names(users.value), reads: reads.checked, repeats: repeats.checked, seconds, sharing: sharing.value });
    },
  });
  return made;
}
