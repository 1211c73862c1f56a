// What publishing a rule would do that hurts, and the confirmation that it asks for.

import { count } from "./format.js";
import { nameIn } from "./rulenames.js";
import { button, h } from "./ui.js";

/** @typedef {{ ruleId: string, name: string, does: string[] }} Danger a rule, and what it does in words */

/**
 * @param {Contract.RuleLintResult} lint
 * @param {any[]} rules that it concerns
 * @param {string[]} [touched] the rules that publishing adds or changes; absent: all
 * @returns {Danger[]}
 */
export function dangersOf({ warnings }, rules, touched) {
  /** @type {Map<string, string[]>} */
  const found = new Map();
  for (const { hurts, ruleId, message } of warnings) {
    if (!hurts || !ruleId || (touched && !touched.includes(ruleId))) continue;
    if (rules.find((rule) => rule.id === ruleId)?.enabled === false) continue;
    found.set(ruleId, [...new Set([...(found.get(ruleId) ?? []), message])]);
  }
  return [...found].map(([ruleId, does]) => {
    const hidden = warnings.filter(
      (one) => one.causedBy === ruleId && one.code === "unreachable-rule",
    );
    const names = hidden.map((one) => nameIn(rules, one.ruleId ?? ""));
    const makes = `It comes before ${count(names.length, "other rule")} that will never decide: ${names.join(", ")}.`;
    return { ruleId, name: nameIn(rules, ruleId), does: names.length ? [...does, makes] : does };
  });
}

/**
 * @param {Danger[]} dangers
 * @param {(() => Promise<any>) | false | undefined} replay starts a replay of these rules; absent or false: there is one
 * @returns {{ panel: Child, missing: () => string }} what hurts, with a field for the name of each rule
 */
export function confirmDangers(dangers, replay) {
  const fields = dangers.map(({ name }) => {
    const field = h("input", {
      "aria-label": `Type ${name} to publish it all the same`,
      autocomplete: "off",
      spellcheck: false,
      // The dialog looks at what is missing when a field changes.
      oninput: () => field.dispatchEvent(new Event("change", { bubbles: true })),
    });
    return field;
  });
  const panel = dangers.map(({ name, does }, index) =>
    h(
      "div.callout.bad",
      h("p.strong", `What ${name} does can hurt:`),
      h(
        "ul",
        does.map((text) => h("li", text)),
      ),
      h("label", `Type the name of the rule, ${name}, to publish it all the same: `, fields[index]),
    ),
  );
  return {
    panel: [
      panel,
      replay &&
        h(
          "p.row",
          "No replay shows what these rules do. ",
          button("Replay them first", replay, "primary"),
        ),
    ],
    missing: () =>
      dangers.some(({ name }, index) => fields[index].value.trim() !== name)
        ? "Type the name of each rule that can hurt."
        : "",
  };
}
