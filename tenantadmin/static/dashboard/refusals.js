// What the service says is wrong in a request: at the field, with the field's label, and never by a
// pointer.

import { h } from "./dom.js";

/**
 * @param {any} error
 * @returns {{path: string, message: string}[]} what is wrong in the request, and where
 */
const placesOf = (error) => error.body?.details ?? [];

/** @param {any} error whether what the places say is all there is to say */
export const isInvalid = (error) => error.code === "validation_failed" && !!placesOf(error)[0];

/** @param {string} path */
const namesOf = (path) => path.split("/").filter((one) => /\D/.test(one));

/**
 * @param {string} path
 * @returns {HTMLElement | undefined} `/channels/1/to` is the second field `channels`, or `to`
 */
function fieldOf(path) {
  const names = namesOf(path);
  for (const name of [names[0], names.at(-1)]) {
    /** @type {NodeListOf<HTMLElement>} */
    const all = document.querySelectorAll(
      `:is(dialog[open], body:not(:has(dialog[open])) main) [name="${CSS.escape(name ?? "")}"]`,
    );
    const fields = [...all].filter((one) => one.offsetParent);
    if (fields.length) return fields[Number(/\d+/.exec(path)?.[0] ?? 0)] ?? fields[0];
  }
}

/**
 * @param {unknown} error
 * @returns {[string, string][]} the label and what is wrong, for each place
 */
export const labelled = (error) =>
  placesOf(error).map(({ path, message }, _, { length }) => {
    const field = fieldOf(path);
    const words = length > 1 && namesOf(path).at(-1)?.replace(/[A-Z]/g, " $&").toLowerCase();
    return [
      field?.closest(".field")?.querySelector(".label")?.textContent ||
        field?.ariaLabel ||
        words ||
        "",
      message,
    ];
  });

/** @param {unknown} error @returns {boolean} whether all that is wrong stands at its fields now */
export function showAtFields(error) {
  const places = isInvalid(error) ? placesOf(error) : [];
  const fields = places.flatMap(({ path }) => fieldOf(path) ?? []);
  if (!fields[0] || fields.length < places.length) return false;
  fields.forEach((field, index) => {
    field.setAttribute("aria-invalid", "true");
    (field.closest(".field") ?? field.parentElement)?.append(
      h("span.wrong", { role: "alert" }, places[index].message),
    );
  });
  fields[0].focus();
  return true;
}

export function forgetWrong() {
  for (const one of document.querySelectorAll(".wrong, [aria-invalid]"))
    one.matches(".wrong") ? one.remove() : one.removeAttribute("aria-invalid");
}
