// Tables: columns by what they show, sorted by a click on a heading.

import { fill, fitting, h } from "../dom.js";
import { ago, number, when, NONE } from "../format.js";
import { button, panel } from "./basics.js";

/**
 * @type {(head: string, key: string, show?: (value: any) => Child) => Column} a column of a member
 *   that is a text
 */
export const text = (head, key, show = (value) => value ?? NONE) => ({
  head,
  cell: (row) => show(row[key]),
  sort: (row) => row[key] ?? null,
});

/**
 * @type {(head: string, key: string, show?: (value: any) => Child) => Column} of a member that is a
 *   number
 */
export const num = (head, key, show = number) => ({ ...text(head, key, show), number: true });

/** @type {(head: string, key: string) => Column} of a member that is a time */
export const age = (head, key) => ({
  ...text(head, key, (at) => h("span", { title: at && when(at) }, ago(at))),
  class: "nowrap",
  sort: (row) => Date.parse(row[key]) || null,
});

/** @type {(cell: (row: any) => Child) => Column} of what one does with a row */
export const acts = (cell) => ({ head: "Actions", hidden: true, number: true, cell });

/**
 * @type {(wanted: (Column | false)[], rows: any[], options: TableOptions) => HTMLElement} a table,
 *   or what `none` says; a click on a heading sorts, where the column has `sort`
 */
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
    return h(
      "th",
      { scope: "col", class: column.number && "num" },
      column.sort
        ? h("button.sort", { type: "button", onclick: press }, column.head)
        : column.hidden
          ? h("span.hidden", column.head)
          : column.head,
    );
  });
  const draw = () => {
    const key = columns[by]?.sort;
    const ordered = key
      ? [...rows].sort((x, y) => (down ? -1 : 1) * compare(key(x), key(y)))
      : rows;
    heads.forEach((head, index) =>
      head.setAttribute("aria-sort", index !== by ? "none" : down ? "descending" : "ascending"),
    );
    fill(
      body,
      ordered.slice(0, shown).map((row) =>
        h(
          "tr",
          columns.map((column) =>
            h(
              "td",
              {
                class: `${column.number ? "num" : ""} ${column.class ?? ""}`.trim() || null,
                "data-label": !column.hidden && column.head,
              },
              column.cell(row),
            ),
          ),
        ),
      ),
    );
    const rest = ordered.length - shown;
    fill(
      more,
      rest > 0 &&
        button(`Show ${Math.min(rest, limit)} more of ${rest}`, () => {
          shown += limit;
          draw();
        }),
    );
  };
  draw();
  const box = h(
    "div.table",
    { tabindex: 0, role: "region", "aria-label": label },
    h("table", h("thead", h("tr", heads)), body),
    more,
  );
  if (label !== "Result") fitting.observe(box);
  return box;
}

/**
 * @type
 *   {(title: string, aside: Child, columns: (Column | false)[], rows: any[],
 *   options?: TableOptions) => HTMLElement}
 *   a table in a panel of its name
 */
export const tablePanel = (title, aside, columns, rows, options) =>
  panel(title, aside, table(columns, rows, { label: title, ...options }));

/**
 * @type {(shown: Child, more: () => Child) => HTMLElement} a cell that opens a row of the whole
 *   width below its own
 */
export function opening(shown, more) {
  const details = h("details.statement", h("summary", h("div.opens", shown)));
  /** @type {HTMLElement | undefined} */
  let below;
  details.addEventListener("toggle", () => {
    const row = details.closest("tr");
    below ??= h("tr.below", h("td", { colspan: row?.cells.length }, more()));
    if (details.open) row?.after(below);
    else below.remove();
  });
  return details;
}

/** @param {string | number | bigint | null} x @param {string | number | bigint | null} y */
function compare(x, y) {
  if (x === null || y === null) return x === y ? 0 : x === null ? -1 : 1;
  return typeof x === "string" ? -x.localeCompare(String(y)) : Number(x > y) - Number(x < y);
}
