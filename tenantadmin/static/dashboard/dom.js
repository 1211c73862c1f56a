// Elements from plain calls: h("p", {class: "muted"}, "text", child). Texts are never parsed as HTML.

/** @typedef {Node | string | number | null | undefined | false} Leaf */
/** @typedef {Leaf | Leaf[] | (Leaf | Leaf[])[]} Child */

/**
 * @param {string} tag
 * @param {Record<string, any> | null} [props] attributes; `on…` listeners; true and false for bare attributes
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") /** @type {HTMLInputElement} */ (element).value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...leaves(children));
  return element;
}

/**
 * @param {any[]} children
 * @returns {(Node | string)[]}
 */
function leaves(children) {
  return children
    .flat(9)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}

/**
 * Replace what `parent` holds.
 * @param {Element} parent
 * @param {...Child} children
 */
export function fill(parent, ...children) {
  parent.replaceChildren(...leaves(children));
}

const ICONS = {
  tenants: "M2 14V6l6-4 6 4v8M6 14v-4h4v4",
  setup: "m2 4 1.500 1.500L6 3M2 11l1.500 1.500L6 10M8.500 4.500H14m-5.500 7H14",
  overview: "M2 14h12M4 11V7m4 4V3m4 8V6",
  savings: "M8 14.500a6.500 6.500 0 1 0 0-13 6.500 6.500 0 0 0 0 13zM10 5.500c-1-1-4-1-4 .8s4 1 4 2.800-3 1.800-4 .8M8 3.700v8.600",
  traffic: "M2 5h10m-2-2.500L12.500 5 10 7.500M14 11H4m2-2.500L3.500 11 6 13.500",
  statements: "M2 4h12M2 8h12M2 12h8",
  reports: "M8 2 14.5 13.5h-13zM8 6v4m0 1.6v.4",
  digest: "M3 2h10v12H3zM5.5 5h5m-5 3h5m-5 3h3",
  alerts: "M8 2a4 4 0 0 0-4 4c0 3.500-1.500 4.500-1.500 5.500h11c0-1-1.500-2-1.500-5.500a4 4 0 0 0-4-4zM6.500 14h3",
  rules: "M2 4h7m3 0h2M2 8h2m3 0h7M2 12h6m3 0h3M9 2.5v3m-5 1v3m7 1v3",
  drafts: "m3 13 1-3.5L10.5 3 13 5.5 6.5 12zM9 4.5 11.5 7",
  history: "M8 4.5V8l2.5 1.5M2.5 8A5.5 5.5 0 1 0 4 4.2M4 2v2.5h2.5",
  recommendations: "M6 12.5h4M6.5 14.5h3M5 9.5a4 4 0 1 1 6 0c-.7.7-1 1.200-1 2H6c0-.8-.3-1.300-1-2z",
  sql: "M3 4c0-2.500 10-2.500 10 0s-10 2.500-10 0v8c0 2.500 10 2.500 10 0V4M3 8c0 2.500 10 2.500 10 0",
  explain: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zm3.500-1.500L14 14",
  invalidate: "M3 4.500h10M6.500 4.500V3h3v1.500M4.500 4.500l.5 9h6l.5-9M7 7v4m2-4v4",
  config: "M8 10.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM8 2v2m0 8v2M2 8h2m8 0h2M3.800 3.800l1.400 1.400m5.600 5.600 1.400 1.400m0-8.400-1.400 1.400m-5.600 5.600-1.400 1.400",
  members: "M6 8a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zm-4.500 6c0-6 9-6 9 0M11 8a2 2 0 1 0-1-3.800m2 5.400c1.700.4 2.500 2 2.500 4.400",
  account: "M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zm-6 6.500c0-7 12-7 12 0",
};

/** @typedef {keyof typeof ICONS} Icon */

/** @param {Icon} name */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}
