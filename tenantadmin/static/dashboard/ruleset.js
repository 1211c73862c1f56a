// The editor of a ruleset: JSON with the service's lint as one types.

import { call } from "./api.js";
import { compareRules } from "./diff.js";
import { given } from "./dom.js";
import { createEditor } from "./editor.js";
import { linesOf, lineOf, parseJson } from "./jsonlines.js";
import { askForRule } from "./ruleform.js";
import {
  badge,
  beside,
  button,
  fill,
  forgetNotices,
  h,
  lintBadges,
  panel,
  sentence,
} from "./ui.js";

const PAUSE_MS = 400;

/** Fields, condition keys and operators, from the page of the service (rules/contract.py). */
const WORDS = /** @type {[string, string][]} */ (given("rule-words") ?? []).map(
  ([value, meta]) => ({ value, meta }),
);

/**
 * @param {{rules: any[], label: string, context: Context, readOnly?: boolean, begin?: string[]}}
 *   options `begin`: tables of a rule to begin with
 */
export async function rulesetEditor({ rules, label, context, readOnly, begin }) {
  let saved = JSON.stringify(rules, null, 2);
  const state = h("span.muted.small", { role: "status" });
  const list = h("ul.findings", { "aria-label": "Findings" });
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  /** @returns {any[]} */
  const read = () => {
    const problem = syntaxError(editor.value());
    if (!problem) return JSON.parse(editor.value());
    editor.goTo(problem.line);
    throw new Error(`Correct line ${problem.line} first. ${problem.message}`);
  };

  /** @param {{severity: string, code: string, message: string, line: number}[]} findings */
  const showFindings = (findings) => {
    editor.annotate(findings);
    const errors = findings.filter((one) => one.severity === "error").length;
    fill(state, lintBadges(errors, findings.length - errors));
    fill(
      list,
      !findings.length &&
        h(
          "li.pad.muted.small",
          readOnly ? "There is nothing to correct." : "Findings appear here as you type.",
        ),
      findings.map((one) =>
        h(
          "li",
          h(
            "button",
            { type: "button", onclick: () => editor.goTo(one.line) },
            h(
              "div.row",
              badge(one.code, one.severity === "error" ? "bad" : "warn"),
              beside(`line ${one.line}`),
            ),
            h("div", one.message),
          ),
        ),
      ),
    );
  };

  const lint = async () => {
    const text = editor.value();
    const problem = syntaxError(text);
    if (problem) return showFindings([{ severity: "error", code: "json", ...problem }]);
    fill(state, "Checking…");
    try {
      const result = await validate(read(), undefined, context.signal);
      if (text !== editor.value()) return;
      const lines = linesOf(text);
      // The pointers of the service begin at the document, the text at its rules.
      showFindings(
        [...result.errors, ...result.warnings].map((one) => ({
          ...one,
          line: lineOf(lines, one.path.replace(/^\/rules/, "")),
        })),
      );
    } catch (error) {
      if (!context.signal.aborted && text === editor.value()) fill(state, sentence(error));
    }
  };
  const soon = () => {
    forgetNotices(".error");
    clearTimeout(timer);
    timer = setTimeout(lint, PAUSE_MS);
  };

  const said = h("span.small", { role: "status" });
  /**
   * @param {string | null | undefined} id
   * @param {string} what go to a rule, and say what was done with it
   */
  const point = (id, what) => {
    const now = read();
    const at = now.findIndex((one) => one?.id === id);
    if (at < 0) return;
    const lines = linesOf(editor.value());
    const line = lineOf(lines, `/${at}`);
    editor.goTo(line, (lines.get(`/${at + 1}`) ?? editor.value().trimEnd().split("\n").length) - 1);
    fill(said, h("strong", `${what}: ${now[at].name || id}, line ${line}. Not published yet.`));
  };
  const byForm = async (/** @type {string[]} */ tables = []) => {
    const before = read();
    const made = await askForRule(before, undefined, tables);
    if (!made) return;
    editor.set(JSON.stringify(made, null, 2));
    const {
      added: [added],
      changed: [changed],
    } = compareRules(before, made);
    point((added ?? changed)?.id, added ? "Added" : "Changed");
  };
  const ids = rules.map((rule) => ({ value: String(rule?.id), meta: "rule id" }));
  const editor = await createEditor({
    mode: "json",
    text: saved,
    label,
    readOnly,
    words: () => [...WORDS, ...ids],
    change: soon,
    signal: context.signal,
  });
  context.guard(() => editor.value() !== saved);
  context.signal.addEventListener("abort", () => clearTimeout(timer));
  lint();
  if (begin?.length && !readOnly) context.later(() => byForm(begin));
  return {
    element: h(
      "div.split",
      panel(
        "Rules",
        [said, !readOnly && button("Add or edit by form", () => byForm(), "small")],
        editor.element,
      ),
      panel("Lint", state, list),
    ),
    read,
    point,
    isChanged: () => editor.value() !== saved,
    markSaved: () => {
      saved = editor.value();
    },
  };
}

/** @param {string} text what keeps it from being an array in JSON */
function syntaxError(text) {
  try {
    return Array.isArray(parseJson(text))
      ? null
      : { line: 1, message: "The rules are a JSON array: [ … ]." };
  } catch (/** @type {any} */ error) {
    return { line: error.row, message: error.message };
  }
}

/**
 * @param {any[]} rules
 * @param {any[]} [compareWith] earlier rules, to be told what changes
 * @param {AbortSignal} [signal]
 * @returns {Promise<Contract.RuleLintResult>}
 */
export async function validate(rules, compareWith, signal) {
  try {
    return await call("POST /config/rules/validate", { body: { rules, compareWith } }, { signal });
  } catch (/** @type {any} */ error) {
    if (error.body?.valid === false) return error.body;
    throw error;
  }
}
