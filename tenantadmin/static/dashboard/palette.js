// The command palette of the dashboard and of the admin site: pages, names and acts in one list, by
// the keyboard.

import { fill, h } from "./dom.js";

/** Results of a search wait for the end of a word. */
const PAUSE_MS = 120;

/**
 * @param {(term: string) => Offer[] | Promise<Offer[]>} find what `term` means, the likeliest first
 * @param {{placeholder: string, hint?: string, keys?: Child}} words
 */
export function openPalette(find, { placeholder, hint = "", keys }) {
  // Asked for twice, before it was there.
  if (document.querySelector("dialog")) return;
  let at = 0;
  /** The words that the list answers, and whether Enter waits for an answer. */
  let answered = "";
  let opensFirst = false;
  /** @type {HTMLAnchorElement[]} */
  let links = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const list = h("ul", { "aria-live": "polite" });
  const query = h("input", {
    "aria-label": "Go to",
    placeholder,
    autocomplete: "off",
  });
  const mark = (/** @type {number} */ index) => {
    at = Math.max(0, Math.min(index, links.length - 1));
    links.forEach((one, place) =>
      place === at ? one.setAttribute("aria-current", "true") : one.removeAttribute("aria-current"),
    );
    links[at]?.scrollIntoView({ block: "nearest" });
  };
  const show = (/** @type {string} */ term, /** @type {Offer[]} */ found) => {
    // The answer to the first letters may come last.
    if (term !== query.value) return;
    answered = term;
    links = found.map(([name, href, more]) =>
      h("a", { href, onclick: () => dialog.close() }, h("span", name), h("span.more-words", more)),
    );
    fill(
      list,
      links.length
        ? links.map((one) => h("li", one))
        : h("li.nothing", term ? `Nothing matches “${term}”. ${hint}` : hint),
    );
    list.setAttribute("data-answers", term);
    mark(0);
    if (opensFirst) links[0]?.click();
    opensFirst = false;
  };
  const search = () => {
    const term = query.value;
    const found = find(term.trim());
    if (Array.isArray(found)) return show(term, found);
    found.then(
      (offers) => show(term, offers),
      () => {
        if (term === query.value)
          fill(
            list,
            h("li.nothing", { role: "alert" }, "This could not be loaded. Type on, or try again."),
          );
      },
    );
  };
  query.addEventListener("input", () => {
    opensFirst = false;
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE_MS);
  });
  /** @type {HTMLDialogElement} */
  const dialog = h(
    "dialog.palette",
    { "aria-label": "Go to", onclose: () => dialog.remove() },
    query,
    list,
    h(
      "p",
      h("kbd", "↑ ↓"),
      " choose, ",
      h("kbd", "Enter"),
      " opens, ",
      h("kbd", "Esc"),
      " closes. ",
      h("kbd", "Ctrl K"),
      " or ",
      h("kbd", "?"),
      " opens this list anywhere",
      keys,
      ".",
    ),
  );
  dialog.addEventListener("keydown", (event) => {
    const step = Number(event.key === "ArrowDown") - Number(event.key === "ArrowUp");
    if (event.key === "Enter" && event.target === query) {
      event.preventDefault();
      if (answered === query.value) links[at]?.click();
      else opensFirst = true;
    }
    if (!step) return;
    event.preventDefault();
    mark(at + step);
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
  search();
}
