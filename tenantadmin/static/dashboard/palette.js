// All pages, tenants and acts in one list, by the keyboard: Ctrl+K or ?.

import { fill, h } from "./dom.js";
import { beside, fine, input } from "./ui.js";

/** @param {Offer[]} entries */
export function openPalette(entries) {
  // Asked for twice, before it was there.
  if (document.querySelector("dialog")) return;
  let at = 0;
  /** @type {HTMLAnchorElement[]} */
  let links = [];
  const list = h("ul");
  const query = input("palette", "", {
    "aria-label": "Go to",
    placeholder: "A page, a tenant, or what you want to do",
    autocomplete: "off",
  });
  const mark = (/** @type {number} */ index) => {
    at = Math.max(0, Math.min(index, links.length - 1));
    links.forEach((one, place) =>
      place === at ? one.setAttribute("aria-current", "true") : one.removeAttribute("aria-current"),
    );
  };
  const draw = () => {
    const words = query.value.toLowerCase().split(/\s+/);
    links = entries
      .filter(([name, , more]) =>
        words.every((word) => `${name} ${more}`.toLowerCase().includes(word)),
      )
      .slice(0, 12)
      .map(([name, href, more]) =>
        h("a", { href, onclick: () => dialog.close() }, name, beside(more)),
      );
    fill(
      list,
      links.length
        ? links.map((one) => h("li", one))
        : h("li.muted", "Nothing here has this name."),
    );
    mark(0);
  };
  query.addEventListener("input", draw);
  /** @type {HTMLDialogElement} */
  const dialog = h(
    "dialog.palette",
    { "aria-label": "Go to", onclose: () => dialog.remove() },
    query,
    list,
    fine(
      h("kbd", "↑ ↓"),
      " choose, ",
      h("kbd", "Enter"),
      " opens, ",
      h("kbd", "Esc"),
      " closes. ",
      h("kbd", "Ctrl K"),
      " or ",
      h("kbd", "?"),
      " opens this list anywhere; ",
      h("kbd", "Ctrl Enter"),
      " runs SQL.",
    ),
  );
  dialog.addEventListener("keydown", (event) => {
    const step = Number(event.key === "ArrowDown") - Number(event.key === "ArrowUp");
    if (event.key === "Enter" && event.target === query) links[at]?.click();
    if (!step) return;
    event.preventDefault();
    mark(at + step);
  });
  draw();
  document.body.append(dialog);
  dialog.showModal();
}
