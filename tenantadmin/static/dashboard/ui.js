// Small building blocks of pages.

import { ApiError } from "./api.js";
import { fill, h } from "./dom.js";

/** @typedef {import("./dom.js").Child} Child */

/**
 * @param {string} label
 * @param {(event: Event) => any} action errors are shown as a notice; the button waits meanwhile
 * @param {string} [kind] `primary`, `danger`, `quiet`
 */
export function button(label, action, kind = "") {
  const element = /** @type {HTMLButtonElement} */ (h("button", { type: "button", class: `button ${kind}` }, label));
  element.addEventListener("click", async (event) => {
    element.disabled = true;
    try {
      await action(event);
    } catch (error) {
      notify(sentence(error), "error");
    } finally {
      element.disabled = false;
    }
  });
  return element;
}

/**
 * @param {string} href
 * @param {...Child} children
 */
export const a = (href, ...children) => h("a", { href }, ...children);

/** @param {unknown} error */
export function sentence(error) {
  if (!(error instanceof Error)) return String(error);
  return error instanceof ApiError && error.requestId ? `${error.message} (request ${error.requestId})` : error.message;
}

/**
 * What went wrong, in one sentence, with the places in the request, its id and a way to try again.
 * @param {unknown} error
 * @param {() => void} [retry]
 */
export function failure(error, retry) {
  const id = error instanceof ApiError ? error.requestId : "";
  /** @type {{path: string, message: string}[]} */
  const places = (error instanceof ApiError && error.body?.details) || [];
  return h("div", { class: "state", role: "alert" },
    h("p", null, error instanceof Error ? error.message : String(error)),
    places.slice(0, 5).map((place) => h("p", { class: "small" }, place.path && h("code", null, place.path), " ", place.message)),
    id && h("p", { class: "muted small" }, "Request ", h("code", null, id)),
    retry && button("Try again", retry));
}

/**
 * @param {string} title
 * @param {...Child} more
 */
export const empty = (title, ...more) => h("div", { class: "state" }, h("p", { class: "strong" }, title), ...more);

/** @param {number} [lines] */
export const skeleton = (lines = 6) =>
  h("div", { class: "skeleton", role: "status", "aria-label": "Loading" },
    Array.from({ length: lines }, () => h("div", { class: "bone" })));

/**
 * @param {string} title
 * @param {Child} aside
 * @param {...Child} children
 */
export const panel = (title, aside, ...children) =>
  h("section", { class: "panel" },
    h("header", { class: "panel-head" }, h("h2", null, title), aside && h("div", { class: "row" }, aside)),
    ...children);

/**
 * @typedef {{head: string, cell: (row: any) => Child, number?: boolean, class?: string, hidden?: boolean,
 *   sort?: (row: any) => string | number | bigint | null}} Column
 */

/**
 * A table. A click on a heading sorts by it, where the column has `sort`.
 * @param {Column[]} columns
 * @param {any[]} rows
 * @param {{label: string, limit?: number, sorted?: number}} options
 */
export function table(columns, rows, { label, limit = 200, sorted = -1 }) {
  const body = h("tbody", null);
  const more = h("div", { class: "more" });
  let by = sorted;
  let down = true;
  let shown = limit;
  const heads = columns.map((column, index) => {
    if (!column.sort) return h("th", { scope: "col", class: column.number && "num" }, column.hidden ? h("span", { class: "hidden" }, column.head) : column.head);
    const press = () => {
      down = by === index ? !down : true;
      by = index;
      draw();
    };
    return h("th", { scope: "col", class: column.number && "num" },
      h("button", { type: "button", class: "sort", onclick: press }, column.head));
  });
  const draw = () => {
    const key = columns[by]?.sort;
    const sign = down ? -1 : 1;
    const ordered = key ? [...rows].sort((x, y) => sign * compare(key(x), key(y))) : rows;
    heads.forEach((head, index) => {
      if (index === by) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    fill(body, ordered.slice(0, shown).map((row) => h("tr", null, columns.map((column) =>
      h("td", { class: `${column.number ? "num" : ""} ${column.class ?? ""}`.trim() || null }, column.cell(row))))));
    const rest = ordered.length - shown;
    fill(more, rest > 0 && button(`Show ${Math.min(rest, limit)} more of ${rest}`, () => { shown += limit; draw(); }));
  };
  draw();
  return h("div", { class: "table", tabindex: 0, role: "region", "aria-label": label },
    h("table", null, h("thead", null, h("tr", null, heads)), body), more);
}

/**
 * @param {string | number | bigint | null} x
 * @param {string | number | bigint | null} y
 */
function compare(x, y) {
  if (x === null || y === null) return x === y ? 0 : x === null ? -1 : 1;
  return typeof x === "string" ? -x.localeCompare(String(y)) : Number(x > y) - Number(x < y);
}

/**
 * @param {string} label
 * @param {string} [kind] `good`, `warn`, `bad`, `info`
 */
export const badge = (label, kind = "") => h("span", { class: `badge ${kind}` }, label);

/**
 * @param {string} label
 * @param {HTMLElement} input
 * @param {string} [hint]
 */
export const field = (label, input, hint) =>
  h("label", { class: "field" }, h("span", { class: "label" }, label), input, hint && h("span", { class: "hint" }, hint));

/**
 * @param {string} name
 * @param {any} value
 * @param {Record<string, any>} [props]
 */
export const input = (name, value, props) => /** @type {HTMLInputElement} */ (h("input", { name, value: value ?? "", ...props }));

/**
 * @param {string} name
 * @param {[string, string][]} choices
 * @param {string} value
 * @param {Record<string, any>} [props]
 */
export const select = (name, choices, value, props) => /** @type {HTMLSelectElement} */ (
  h("select", { name, ...props }, choices.map(([key, text]) => h("option", { value: key, selected: key === value }, text))));

/**
 * Text to take along.
 * @param {string} text
 * @param {string} label
 */
export const copyable = (text, label) => h("div", { class: "copyable" }, h("pre", { class: "code", tabindex: 0, "aria-label": label }, text),
  button("Copy", async () => {
    await navigator.clipboard.writeText(text);
    notify("Copied.");
  }, "small"));

/**
 * Show a token, which the service shows once.
 * @param {string} text
 * @param {...Child} more
 */
export const showToken = (text, ...more) => ask({ title: "Your new token", action: "Copy", cancel: "Close", run: () => navigator.clipboard.writeText(text),
  body: h("div", null, h("p", null, "It is shown only now."), h("pre", { class: "code token", tabindex: 0, "aria-label": "Token" }, text), ...more) });

/** @param {[string, string, boolean][]} entries address, text, whether it is the present page */
export const tabs = (entries) =>
  h("nav", { class: "tabs", "aria-label": "Views" },
    entries.map(([href, text, now]) => h("a", { href, "aria-current": now && "page" }, text)));

const notices = document.body.appendChild(h("div", { class: "notices", "aria-live": "polite" }));

/**
 * @param {string} text
 * @param {"" | "error"} [kind]
 */
export function notify(text, kind = "") {
  const notice = h("div", { class: `notice ${kind}`, role: kind && "alert" }, text,
    h("button", { type: "button", class: "close", "aria-label": "Dismiss", onclick: () => notice.remove() }, "×"));
  notices.append(notice);
  setTimeout(() => notice.remove(), kind ? 15_000 : 5000);
}

/**
 * Ask in a dialog. Resolves to whether the action ran; its error keeps the dialog open.
 * @param {{title: string, body: Child, action: string, danger?: boolean, run: () => any, wide?: boolean, cancel?: string}} options
 * @returns {Promise<boolean>}
 */
export function ask({ title, body, action, danger, run, wide, cancel = "Cancel" }) {
  return new Promise((resolve) => {
    const problem = h("div", null);
    const attempt = async () => {
      fill(problem);
      try {
        await run();
      } catch (error) {
        fill(problem, failure(error));
        return;
      }
      done = true;
      dialog.close();
    };
    let done = false;
    const act = button(action, attempt, danger ? "danger" : "primary");
    const dialog = /** @type {HTMLDialogElement} */ (h("dialog", { class: wide && "wide", "aria-label": title },
      h("h2", null, title), h("div", { class: "dialog-body" }, body), problem,
      h("div", { class: "row end" }, button(cancel, () => dialog.close()), act)));
    dialog.addEventListener("keydown", (event) => {
      const { target } = event;
      if (event.key === "Enter" && target instanceof HTMLInputElement && target.type !== "checkbox") act.click();
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(done);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
