// Fields of forms.

import { h } from "../dom.js";

/** @param {string} label @param {HTMLElement} input @param {Child} [hint] */
export const field = (label, input, hint) =>
  h("label.field", h("span.label", label), input, hint && h("span.hint", hint));

/** @type {(name: string, value: any, props?: Props) => HTMLInputElement} */
export const input = (name, value, props) => h("input", { name, value: value ?? "", ...props });

/** @type {(name: string, checked: boolean, props?: Props) => HTMLInputElement} */
export const checkbox = (name, checked, props) =>
  h("input", { type: "checkbox", name, checked, ...props });

/** @type {(name: string, value: string, props?: Props) => HTMLTextAreaElement} */
export const area = (name, value, props) =>
  h("textarea.mono", { name, rows: 3, spellcheck: "false", value, ...props });

/**
 * @type
 *   {(name: string, choices: Texts | (string | [string, string])[], value: string,
 *   props?: Props) => HTMLSelectElement}
 *   `choices`: texts by value, or values
 */
export const select = (name, choices, value, props) =>
  h(
    "select",
    { name, ...props },
    (Array.isArray(choices) ? choices : Object.entries(choices))
      .map((one) => (typeof one === "string" ? [one, one] : one))
      .map(([key, text]) => h("option", { value: key, selected: key === value }, text)),
  );
