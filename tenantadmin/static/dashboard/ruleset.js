// The editor of a ruleset: JSON with the service's lint as one types.

import { ApiError, call } from "./api.js";
import { fill, h } from "./dom.js";
import { createEditor } from "./editor.js";
import { count } from "./format.js";
import { linesOf, lineOf } from "./jsonlines.js";
import { askForRule } from "./ruleform.js";
import { badge, button, panel, sentence } from "./ui.js";

/** @typedef {Contract.Finding} Finding */

const PAUSE_MS = 400;

/**
 * @param {{rules: any[], label: string, context: import("./router.js").Context, readOnly?: boolean, begin?: string[]}} options
 *   `begin`: tables of a rule to begin with
 */
export async function rulesetEditor({ rules, label, context, readOnly, begin }) {
  let saved = JSON.stringify(rules, null, 2);
  const state = h("span", { class: "muted small", role: "status" });
  const list = h("ul", { class: "findings", "aria-label": "Findings" });
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let run = 0;

  /** @returns {any[] | null} */
  const read = () => {
    try {
      const value = JSON.parse(editor.value());
      return Array.isArray(value) ? value : null;
    } catch {
      return null;
    }
  };

  /** @param {{severity: string, code: string, message: string, suggestion?: string, ruleId: string | null, line: number}[]} findings */
  const showFindings = (findings) => {
    editor.annotate(findings);
    const errors = findings.filter((one) => one.severity === "error").length;
    fill(state, findings.length ? [errors > 0 && badge(count(errors, "error"), "bad"), " ",
      findings.length > errors && badge(count(findings.length - errors, "warning"), "warn")] : badge("no findings", "good"));
    fill(list, !findings.length && h("li", { class: "pad muted small" }, readOnly ? "There is nothing to correct." : "Findings appear here as you type."), findings.map((one) => h("li", null, h("button", { type: "button", onclick: () => editor.goTo(one.line) },
      h("div", { class: "row" }, badge(one.code, one.severity === "error" ? "bad" : "warn"), h("span", { class: "muted small" }, `line ${one.line}`)),
      h("div", null, one.message), one.suggestion && h("div", { class: "muted small" }, one.suggestion)))));
  };

  const lint = async () => {
    run += 1;
    const mine = run;
    const text = editor.value();
    const value = read();
    if (!value) {
      showFindings([{ severity: "error", code: "json", ruleId: null, ...syntaxError(text) }]);
      return;
    }
    fill(state, "Checking…");
    try {
      const result = await validate(value, context.signal);
      if (mine !== run || text !== editor.value()) return;
      const lines = linesOf(text);
      // The pointers of the service begin at the document, the text at its rules.
      showFindings([...result.errors, ...result.warnings].map((one) => ({ ...one, line: lineOf(lines, one.path.replace(/^\/rules/, "")) })));
    } catch (error) {
      if (!context.signal.aborted && mine === run) fill(state, sentence(error));
    }
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(lint, PAUSE_MS);
  };

  const byForm = async (/** @type {string[]} */ tables = []) => {
    const value = read();
    if (!value) throw new Error("The text is no JSON array. Correct it first.");
    const made = await askForRule(value, tables);
    if (made) editor.set(JSON.stringify(made, null, 2));
  };
  const editor = await createEditor({ mode: "json", text: saved, label, readOnly, change: soon, onLeave: context.onLeave });
  context.guard(() => editor.value() !== saved);
  context.onLeave(() => clearTimeout(timer));
  lint();
  if (begin?.length && !readOnly) byForm(begin);
  return {
    element: h("div", { class: "split" }, panel("Rules", [h("span", { class: "muted small" }, "The first enabled rule that matches decides."), !readOnly && button("A rule by form", () => byForm(), "small")], editor.element),
      panel("Lint", state, list)),
    read,
    isChanged: () => editor.value() !== saved,
    markSaved: () => { saved = editor.value(); },
  };
}

/** @param {string} text */
function syntaxError(text) {
  try {
    JSON.parse(text);
    return { line: 1, message: "The rules are a JSON array." };
  } catch (error) {
    const message = /** @type {Error} */ (error).message;
    const position = Number(/position (\d+)/.exec(message)?.[1] ?? text.length);
    return { line: text.slice(0, position).split("\n").length, message: message.replace(/^JSON\.parse: /, "") };
  }
}

/**
 * @param {any[]} rules
 * @param {AbortSignal} signal
 * @returns {Promise<Contract.RuleLintResult>}
 */
export async function validate(rules, signal) {
  try {
    return await call("POST /config/rules/validate", { body: { rules } }, { signal });
  } catch (error) {
    if (error instanceof ApiError && error.body?.valid === false) return error.body;
    throw error;
  }
}
