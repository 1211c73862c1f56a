// Buttons, panels, and what a page says while it loads, when it failed, and when there is nothing.

import { fill, h } from "../dom.js";
import { count, today } from "../format.js";
import { forgetWrong, isInvalid, labelled, showAtFields } from "../refusals.js";
import { forgetNotices, notify } from "./notices.js";

/**
 * @param {string} label
 * @param {(event: Event) => any} action errors are shown as a notice
 * @param {string} [kind] `primary`, `danger`, `quiet`
 */
export function button(label, action, kind = "") {
  const element = h("button", { type: "button", class: `button ${kind}` }, label);
  element.addEventListener("click", async (event) => {
    element.disabled = true;
    // What the last try said holds no longer.
    forgetNotices(".error");
    forgetWrong();
    try {
      await action(event);
    } catch (error) {
      showAtFields(error);
      notify(sentence(error), "error");
    } finally {
      element.disabled = false;
    }
  });
  return element;
}

/** @param {string} href @param {...Child} children */
export const a = (href, ...children) => h("a", { href }, ...children);

/** @param {any} error an `Error` of the service or of the browser */
export function sentence(error) {
  if (isInvalid(error))
    return labelled(error)
      .map((pair) => pair.filter(Boolean).join(": "))
      .join(" ");
  return error.requestId ? `${error.message} (request ${error.requestId})` : error.message;
}

/** @param {any} error @param {() => void} [retry] what went wrong, and a way to try again */
export function failure(error, retry) {
  return h(
    "div.state",
    { role: "alert" },
    !isInvalid(error) && h("p", error.message),
    labelled(error)
      .slice(0, 5)
      .map(([label, message]) => h("p.small", label && h("strong", label, ": "), message)),
    error.requestId && fine("Request ", h("code", error.requestId)),
    retry && button("Try again", retry),
  );
}

/** @param {string} title @param {...Child} more */
export const empty = (title, ...more) => h("div.state", h("p.strong", title), ...more);

/** @param {number} [lines] */
export const skeleton = (lines = 6) =>
  h(
    "div.skeleton",
    { role: "status", "aria-label": "Loading" },
    Array.from({ length: lines }, () => h("div.bone")),
  );

/** @param {() => Promise<Child>} load @param {Element} output */
export async function showIn(load, output) {
  const waiting = skeleton(3);
  fill(output, waiting);
  // Only while nothing else was asked for.
  const show = (/** @type {Child} */ shown) => waiting.parentNode === output && fill(output, shown);
  await load().then(show, (error) => show(failure(error, () => showIn(load, output))));
}

/**
 * @type {(title: Child, below?: Child, ...acts: Child[]) => HTMLElement} the head of a page: what
 *   it is, and what one does here
 */
export const pageHead = (title, below, ...acts) =>
  h(
    "header.page-head",
    h("div", typeof title === "string" ? h("h1", title) : title, below && h("p.muted", below)),
    acts.flat().some(Boolean) && h("div.row", acts),
  );

/** @type {(...children: Child[]) => HTMLElement} a small grey text in a line */
export const beside = (...children) => h("span.muted.small", ...children);

/** @type {(...children: Child[]) => HTMLElement} a paragraph in small print */
export const fine = (...children) => h("p.muted.small", ...children);

/** @param {string} title @param {Child} aside @param {...Child} children */
export const panel = (title, aside, ...children) =>
  h(
    "section.panel",
    h("header.panel-head", h("h2", title), aside && h("div.row", aside)),
    ...children,
  );

/** @type {(label: string, kind?: string) => HTMLElement} `good`, `warn`, `bad`, `info` */
export const badge = (label, kind = "") => h("span", { class: `badge ${kind}` }, label);

/** @type {(errors: number, warnings: number) => Child} what lint found */
export const lintBadges = (errors, warnings) =>
  errors + warnings
    ? [
        errors > 0 && badge(count(errors, "error"), "bad"),
        " ",
        warnings > 0 && badge(count(warnings, "warning"), "warn"),
      ]
    : badge("no findings", "good");

/** @type {(value: any, label?: string) => HTMLElement} text, or JSON of the value */
export const code = (value, label) =>
  h(
    "pre.code",
    { tabindex: 0, "aria-label": label },
    typeof value === "string" ? value : JSON.stringify(value, null, 2),
  );

/** @type {(pairs: (Child | [Child, Child])[], kind?: string) => HTMLElement} names and values */
export const facts = (pairs, kind = "") =>
  h(
    `dl.facts${kind}`,
    pairs.map((pair) => Array.isArray(pair) && [h("dt", pair[0]), h("dd", pair[1])]),
  );

/** @param {[string, string, string?][]} entries @param {HTMLElement[]} [first] */
export const tiles = (entries, first) =>
  h(
    "dl.tiles",
    first,
    entries.map(([name, value, note]) =>
      h("div", h("dt", name), h("dd", value, note && h("span.note", note))),
    ),
  );

/** @param {string} text @param {string} label text to take along */
export const copyable = (text, label) =>
  h(
    "div.copyable",
    code(text, label),
    button(
      "Copy",
      async () => {
        await navigator.clipboard.writeText(text);
        notify("Copied.");
      },
      "small",
    ),
  );

/**
 * @type {(entries: [string, string, boolean][], label?: string, kind?: string) => HTMLElement}
 *   address, text, whether it is the present page
 */
export const tabs = (entries, label = "Views", kind = "tabs") =>
  h(
    "nav",
    { class: kind, "aria-label": label },
    entries.map(([href, text, now]) => h("a", { href, "aria-current": now && "page" }, text)),
  );

/**
 * @type
 *   {(label: string, at: (period: string) => string, earlier: string, later: string,
 *   last?: string) => HTMLElement}
 *   links to the periods before and after, up to the last
 */
export const stepper = (label, at, earlier, later, last = today()) =>
  h(
    "nav.segments",
    { "aria-label": label },
    h("a", { href: at(earlier), "aria-label": "Earlier" }, "‹"),
    h("a", { href: later <= last && at(later), "aria-label": "Later" }, "›"),
  );

/**
 * @param {{_links: {next?: {href: string}}}} page
 * @returns {string} the cursor of the next page, or an empty text
 */
export const nextOf = ({ _links: { next } }) =>
  new URLSearchParams(next?.href.split("?")[1]).get("cursor") ?? "";
