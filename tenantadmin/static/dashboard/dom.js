// Elements from plain calls: h("p.muted", {id: "x"}, "text", child). Texts are never parsed as
// HTML.

/**
 * @template {string} T
 * @param {T} tag with its classes: `p.muted.small`
 * @param {...(Child | Record<string, any>)} rest children; first may come attributes: `on…`
 *   listeners; true and false for bare attributes
 * @returns {Made<T>}
 */
export function h(tag, ...rest) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  const props = Object.getPrototypeOf(rest[0] ?? 0) === Object.prototype ? rest.shift() : {};
  for (const [key, value] of Object.entries(/** @type {Record<string, any>} */ (props))) {
    if (value == null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "value") /** @type {HTMLInputElement} */ (element).value = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...leaves(rest));
  return /** @type {Made<T>} */ (element);
}

/** @param {any[]} children @returns {(Node | string)[]} */
function leaves(children) {
  return children
    .flat(9)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}

/** @param {string} id @returns {any} what the service wrote into the page, or null */
export const given = (id) => JSON.parse(document.getElementById(id)?.textContent ?? "null");

/** @param {Element} parent @param {...Child} children replace what `parent` holds */
export function fill(parent, ...children) {
  parent.replaceChildren(...leaves(children));
}

/**
 * @param {Element} parent wait until nothing in it is pressed: the click on what is replaced
 *   meanwhile is lost
 */
export async function released(parent) {
  while (parent.matches(":active")) await new Promise(requestAnimationFrame);
}

/**
 * @param {Element} parent
 * @param {...Child} children as `fill`; the focus stays where the user put it
 */
export function refill(parent, ...children) {
  const focused = /** @type {any} */ (parent.querySelector(":focus"));
  // What a link or a menu says may be what came late. What a button says is what it does.
  const whole = focused?.tagName === "BUTTON";
  const alike = () =>
    [
      .../** @type {NodeListOf<HTMLElement>} */ (parent.querySelectorAll("a, button, select")),
    ].filter((one) => focused?.cloneNode(whole).isEqualNode(one.cloneNode(whole)));
  const before = alike();
  fill(parent, ...children);
  const now = alike();
  // Of buttons that are alike, none if they are more or fewer now.
  if (now.length === before.length) now[before.indexOf(focused)]?.focus();
}

/** @param {string} name one of templates/dashboard/icons.svg */
export function icon(name) {
  const [svg, use] = ["svg", "use"].map((tag) =>
    document.createElementNS("http://www.w3.org/2000/svg", tag),
  );
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `#icon-${name}`);
  svg.append(use);
  return svg;
}

/** @param {() => void} open when Ctrl+K is pressed, or ? where nobody writes */
export function onPaletteKey(open) {
  document.addEventListener("keydown", (event) => {
    const isTyping =
      event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
    const isMeant =
      event.ctrlKey || event.metaKey
        ? event.key.toLowerCase() === "k"
        : event.key === "?" && !isTyping;
    if (!isMeant) return;
    event.preventDefault();
    open();
  });
}

/** Where a table does not fit in the element that is observed, a row is a block (style.css). */
export const fitting = new ResizeObserver((changes) =>
  changes.forEach(({ target }) => {
    target.classList.remove("folded");
    target.classList.toggle("folded", target.scrollWidth > target.clientWidth);
  }),
);
