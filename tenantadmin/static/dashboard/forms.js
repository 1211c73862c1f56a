// Pieces of forms that do more than hold a value.

import { field, h, input, notify, select, sentence } from "./ui.js";

/** A field for the comment on a change, and a function that returns what it says. */
export function commentInput(text = "") {
  const given = input("comment", text, { maxlength: 500, autocomplete: "off" });
  return { field: field("Comment", given, "Why it changes. The history keeps it."), value: () => given.value };
}

/** @type {(name: string, choices: Texts | string[], value: string, label: string, save: (value: string) => any) => HTMLElement} a menu that saves what is chosen at once */
export function savingSelect(name, choices, value, label, save) {
  const menu = select(name, choices, value, { "aria-label": label, onchange: async () => {
    try {
      await save(menu.value);
      value = menu.value;
    } catch (error) {
      notify(sentence(error), "error");
      menu.value = value;
    }
  } });
  return menu;
}

/** @type {(kind: string, submit: (form: HTMLFormElement) => any, ...children: Child[]) => HTMLFormElement} */
export const form = (kind, submit, ...children) => {
  const element = /** @type {HTMLFormElement} */ (h(`form${kind}`, { onsubmit: (/** @type {Event} */ event) => {
    event.preventDefault();
    submit(element);
  } }, ...children));
  return element;
};
