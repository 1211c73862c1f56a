// What pages are built of.

import { fill, fitting, h } from "./dom.js";
import { NONE, ago, count, number, today, when } from "./format.js";
import { forgetWrong, isInvalid, labelled, showAtFields } from "./refusals.js";
import { to } from "./router.js";

export { fill, h, refill, released } from "./dom.js";
export { go, to } from "./router.js";

/** @param {string} label @param {(event: Event) => any} action errors are shown as a notice @param {string} [kind] `primary`, `danger`, `quiet` */
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
  if (isInvalid(error)) return labelled(error).map((pair) => pair.filter(Boolean).join(": ")).join(" ");
  return error.requestId ? `${error.message} (request ${error.requestId})` : error.message;
}

/** @param {any} error @param {() => void} [retry] what went wrong, and a way to try again */
export function failure(error, retry) {
  return h("div.state", { role: "alert" },
    !isInvalid(error) && h("p", error.message),
    labelled(error).slice(0, 5).map(([label, message]) => h("p.small", label && h("strong", label, ": "), message)),
    error.requestId && fine("Request ", h("code", error.requestId)),
    retry && button("Try again", retry));
}

/** @param {string} title @param {...Child} more */
export const empty = (title, ...more) => h("div.state", h("p.strong", title), ...more);

/** @param {number} [lines] */
export const skeleton = (lines = 6) => h("div.skeleton", { role: "status", "aria-label": "Loading" }, Array.from({ length: lines }, () => h("div.bone")));

/** @param {() => Promise<Child>} load @param {Element} output */
export async function showIn(load, output) {
  const waiting = skeleton(3);
  fill(output, waiting);
  // Only while nothing else was asked for.
  const show = (/** @type {Child} */ shown) => waiting.parentNode === output && fill(output, shown);
  await load().then(show, (error) => show(failure(error, () => showIn(load, output))));
}

/** @type {(title: Child, below?: Child, ...acts: Child[]) => HTMLElement} the head of a page: what it is, and what one does here */
export const pageHead = (title, below, ...acts) =>
  h("header.page-head", h("div", typeof title === "string" ? h("h1", title) : title, below && h("p.muted", below)), acts.flat().some(Boolean) && h("div.row", acts));

/** @type {(...children: Child[]) => HTMLElement} a small grey text in a line */
export const beside = (...children) => h("span.muted.small", ...children);

/** @type {(...children: Child[]) => HTMLElement} a paragraph in small print */
export const fine = (...children) => h("p.muted.small", ...children);

/** @param {string} title @param {Child} aside @param {...Child} children */
export const panel = (title, aside, ...children) => h("section.panel", h("header.panel-head", h("h2", title), aside && h("div.row", aside)), ...children);

/** @type {(head: string, key: string, show?: (value: any) => Child) => Column} a column of a member that is a text */
export const text = (head, key, show = (value) => value ?? NONE) => ({ head, cell: (row) => show(row[key]), sort: (row) => row[key] ?? null });

/** @type {(head: string, key: string, show?: (value: any) => Child) => Column} of a member that is a number */
export const num = (head, key, show = number) => ({ ...text(head, key, show), number: true });

/** @type {(head: string, key: string) => Column} of a member that is a time */
export const age = (head, key) => ({ ...text(head, key, (at) => h("span", { title: at && when(at) }, ago(at))), class: "nowrap", sort: (row) => Date.parse(row[key]) || null });

/** @type {(cell: (row: any) => Child) => Column} of what one does with a row */
export const acts = (cell) => ({ head: "Actions", hidden: true, number: true, cell });

/** @type {(tenant: string, id: string | null | undefined, text?: Child) => Child} a link to a rule */
export const ruleLink = (tenant, id, text = id) => (id ? h("a", { href: to(tenant, "rules", { rule: id }), title: id }, text) : h("span.muted", "no rule"));

/** @type {(tenant: string, seq: number | string, text?: Child, kind?: string) => HTMLElement} a link to a revision */
export const revisionLink = (tenant, seq, text = `revision ${seq}`, kind = "rules") => a(to(tenant, "history", { kind, seq }), text);

/** @type {(wanted: (Column | false)[], rows: any[], options: TableOptions) => HTMLElement} a table, or what `none` says; a click on a heading sorts, where the column has `sort` */
export function table(wanted, rows, { label, none, limit = 200, sorted = -1 }) {
  if (none && !rows.length) return h("p.pad.muted", none);
  const columns = wanted.flatMap((one) => one || []);
  const body = h("tbody");
  const more = h("div.more");
  let [by, down, shown] = [sorted, true, limit];
  const heads = columns.map((column, index) => {
    const press = () => {
      down = by === index ? !down : true;
      by = index;
      draw();
    };
    return h("th", { scope: "col", class: column.number && "num" }, column.sort ? h("button.sort", { type: "button", onclick: press }, column.head)
      : column.hidden ? h("span.hidden", column.head) : column.head);
  });
  const draw = () => {
    const key = columns[by]?.sort;
    const ordered = key ? [...rows].sort((x, y) => (down ? -1 : 1) * compare(key(x), key(y))) : rows;
    heads.forEach((head, index) => head.setAttribute("aria-sort", index !== by ? "none" : down ? "descending" : "ascending"));
    fill(body, ordered.slice(0, shown).map((row) => h("tr", columns.map((column) =>
      h("td", { class: `${column.number ? "num" : ""} ${column.class ?? ""}`.trim() || null, "data-label": !column.hidden && column.head }, column.cell(row))))));
    const rest = ordered.length - shown;
    fill(more, rest > 0 && button(`Show ${Math.min(rest, limit)} more of ${rest}`, () => { shown += limit; draw(); }));
  };
  draw();
  const box = h("div.table", { tabindex: 0, role: "region", "aria-label": label },
    h("table", h("thead", h("tr", heads)), body), more);
  if (label !== "Result") fitting.observe(box);
  return box;
}

/** @type {(title: string, aside: Child, columns: (Column | false)[], rows: any[], options?: TableOptions) => HTMLElement} a table in a panel of its name */
export const tablePanel = (title, aside, columns, rows, options) => panel(title, aside, table(columns, rows, { label: title, ...options }));

/** @param {string | number | bigint | null} x @param {string | number | bigint | null} y */
function compare(x, y) {
  if (x === null || y === null) return x === y ? 0 : x === null ? -1 : 1;
  return typeof x === "string" ? -x.localeCompare(String(y)) : Number(x > y) - Number(x < y);
}

/** @type {(label: string, kind?: string) => HTMLElement} `good`, `warn`, `bad`, `info` */
export const badge = (label, kind = "") => h("span", { class: `badge ${kind}` }, label);

/** @param {string} label @param {HTMLElement} input @param {Child} [hint] */
export const field = (label, input, hint) =>
  h("label.field", h("span.label", label), input, hint && h("span.hint", hint));

/** @type {(errors: number, warnings: number) => Child} what lint found */
export const lintBadges = (errors, warnings) => (errors + warnings ? [errors > 0 && badge(count(errors, "error"), "bad"), " ", warnings > 0 && badge(count(warnings, "warning"), "warn")] : badge("no findings", "good"));

/** @type {(name: string, value: any, props?: Props) => HTMLInputElement} */
export const input = (name, value, props) => h("input", { name, value: value ?? "", ...props });

/** @type {(name: string, checked: boolean, props?: Props) => HTMLInputElement} */
export const checkbox = (name, checked, props) => h("input", { type: "checkbox", name, checked, ...props });

/** @type {(name: string, value: string, props?: Props) => HTMLTextAreaElement} */
export const area = (name, value, props) => h("textarea.mono", { name, rows: 3, spellcheck: "false", value, ...props });

/** @type {(name: string, choices: Texts | (string | [string, string])[], value: string, props?: Props) => HTMLSelectElement} `choices`: texts by value, or values */
export const select = (name, choices, value, props) => h("select", { name, ...props },
  (Array.isArray(choices) ? choices : Object.entries(choices)).map((one) => (typeof one === "string" ? [one, one] : one))
    .map(([key, text]) => h("option", { value: key, selected: key === value }, text)));

/** @type {(value: any, label?: string) => HTMLElement} text, or JSON of the value */
export const code = (value, label) => h("pre.code", { tabindex: 0, "aria-label": label }, typeof value === "string" ? value : JSON.stringify(value, null, 2));

/** @type {(pairs: (Child | [Child, Child])[], kind?: string) => HTMLElement} names and values */
export const facts = (pairs, kind = "") => h(`dl.facts${kind}`, pairs.map((pair) => Array.isArray(pair) && [h("dt", pair[0]), h("dd", pair[1])]));

/** @param {string} text @param {string} label text to take along */
export const copyable = (text, label) => h("div.copyable", code(text, label),
  button("Copy", async () => {
    await navigator.clipboard.writeText(text);
    notify("Copied.");
  }, "small"));

/** @param {string} text @param {...Child} more show a token, which the service shows once */
export const showToken = (text, ...more) => ask({ title: "Your new token", action: "Done", cancel: "", wide: true, run: () => {},
  body: h("div.stack", h("p", "It is shown only now. Keep it where programs keep secrets."), copyable(text, "Token"), ...more) });

/** @type {(entries: [string, string, boolean][], label?: string, kind?: string) => HTMLElement} address, text, whether it is the present page */
export const tabs = (entries, label = "Views", kind = "tabs") =>
  h("nav", { class: kind, "aria-label": label }, entries.map(([href, text, now]) => h("a", { href, "aria-current": now && "page" }, text)));

/** @type {(label: string, at: (period: string) => string, earlier: string, later: string, last?: string) => HTMLElement} links to the periods before and after, up to the last */
export const stepper = (label, at, earlier, later, last = today()) => h("nav.segments", { "aria-label": label },
  h("a", { href: at(earlier), "aria-label": "Earlier" }, "‹"), h("a", { href: later <= last && at(later), "aria-label": "Later" }, "›"));

/** @param {{_links: {next?: {href: string}}}} page @returns {string} the cursor of the next page, or an empty text */
export const nextOf = ({ _links: { next } }) => new URLSearchParams(next?.href.split("?")[1]).get("cursor") ?? "";

/** @param {string} [which] */
export const forgetNotices = (which = "*") => notices.querySelectorAll(`:scope > ${which}`).forEach((one) => one.remove());

const notices = h("div.notices", { "aria-live": "polite" });
document.body.prepend(notices);

/** @param {string} text @param {"" | "error" | "revision"} [kind] a notice of a revision stands above the page until the page is left @param {Child} [act] what one may do about it */
export function notify(text, kind = "", act) {
  // What succeeded before signing out is of no use after it.
  const isError = kind === "error";
  if (!isError && document.querySelector("#app.plain")) return;
  forgetNotices(".revision");
  forgetNotices(`[data-text="${CSS.escape(text)}"]`);
  const notice = notices.appendChild(h("div", { class: `notice ${kind}`, role: isError && "alert", "data-text": text }, h("span.grow", text), act,
    h("button", { type: "button", class: "close", "aria-label": "Dismiss", onclick: () => notice.remove() }, "×")));
  if (kind !== "revision") setTimeout(() => notice.remove(), isError ? 15_000 : 5000);
}

/**
 * Ask in a dialog. Resolves to whether the action ran; its error keeps the dialog open. `then` follows when it ran. While something is `missing`, the button is off, and says so.
 * @param {Question} question
 * @returns {Promise<boolean>}
 */
export function ask({ title, body, action, danger, run, then, wide, beside: more, missing, cancel = "Cancel" }) {
  return new Promise((resolve) => {
    const problem = h("div");
    const attempt = async () => {
      /** @type {HTMLInputElement | null} */
      const wrong = dialog.querySelector("input:invalid");
      if (wrong) return void wrong.reportValidity();
      fill(problem);
      try {
        await run();
      } catch (error) {
        // The page was left: a notice says it.
        if (!dialog.open) throw error;
        return void (showAtFields(error) || fill(problem, failure(error)));
      }
      done = true;
      dialog.close();
      await then?.();
    };
    let done = false;
    const act = button(action, attempt, danger ? "danger" : "primary");
    const check = () => {
      if (!missing) return;
      const lacks = missing();
      act.disabled = !!lacks;
      fill(problem, lacks && h("p.small", { role: "status" }, lacks));
    };
    /** @type {HTMLDialogElement} */
    const dialog = h("dialog", { class: wide && "wide", "aria-label": title, onchange: check, onclose: () => { dialog.remove(); resolve(done); } },
      h("h2", { tabindex: -1 }, title), h("div.dialog-body", body),
      h("div.foot", problem, h("div.row.end", more, cancel && button(cancel, () => dialog.close()), act)));
    check();
    dialog.addEventListener("keydown", ({ key, target }) => key === "Enter" && target instanceof HTMLInputElement && target.type !== "checkbox" && act.click());
    document.body.appendChild(dialog).showModal();
    // One types in a field that is first, and otherwise reads from the heading on.
    const first = dialog.querySelector(".dialog-body :is(input, select, [tabindex])");
    /** @type {HTMLElement} */ (first?.matches("[tabindex], [type=checkbox]") === false ? first : dialog.firstElementChild).focus();
    dialog.scrollTop = 0;
  });
}
