// Pages by the fragment of the address: #/t/{tenant}/rules?seq=3. Back, forward and deep links work
// on any host.

import { PRODUCT } from "./config.js";

/**
 * The file of a page did not arrive. Browsers remember that, so only a new document can try again.
 */
export class NotLoaded extends Error {}

/** Between two looks at what goes on elsewhere. */
export const PAUSE_MS = 2000;

/** @param {string} hash */
function parse(hash) {
  const [path, query] = (hash.replace(/^#/, "") || "/").split("?");
  return { path, query: new URLSearchParams(query ?? "") };
}

/** @param {Route[]} routes @param {string} path */
function match(routes, path) {
  const parts = path.split("/");
  for (const route of routes) {
    const wanted = route.pattern.split("/");
    /** @type {Texts} */
    const params = {};
    const fits =
      wanted.length === parts.length &&
      wanted.every((part, index) => {
        if (!part.startsWith(":")) return part === parts[index];
        params[part.slice(1)] = decodeURIComponent(parts[index]);
        return parts[index] !== "";
      });
    if (fits) return { route, params };
  }
  return null;
}

/**
 * Show the page of the address, now and whenever it changes.
 * @param {Route[]} routes
 * @param
 *   {{open: (route: Route | null, context: Context, load: () => Promise<Child>) => Promise<void>,
 *   late: (href: string) => void}}
 *   shell
 */
export function startRouter(routes, shell) {
  /** @type {AbortController | null} */
  let page = null;
  let shown = location.hash;
  /** @type {(() => boolean)} */
  let isDirty = () => false;

  const open = () => {
    if (location.hash !== shown && isDirty() && !confirm("Leave without saving your changes?")) {
      history.pushState(null, "", shown || "#/");
      return;
    }
    // A dialog belongs to the page that it was opened on.
    if (location.hash !== shown) document.querySelector("dialog")?.close();
    shown = location.hash;
    page?.abort();
    isDirty = () => false;
    const controller = new AbortController();
    page = controller;
    const { path, query } = parse(location.hash);
    const found = match(routes, path);
    const params = found?.params ?? {};
    // A page that was left goes on when its answers come, beside the page that is shown by then.
    const isHere = () => page === controller;
    /** @type {Context} */
    const context = {
      params,
      query,
      tenant: params.tenant ?? "",
      signal: controller.signal,
      isShown: () => parse(location.hash).path === path,
      reload: () => {
        if (context.isShown()) open();
      },
      go: (href) => (context.isShown() ? go(href) : shell.late(href)),
      address: (href) => {
        if (isHere()) history.replaceState(null, "", href);
      },
      title: (text) => {
        if (isHere()) document.title = `${text} · ${PRODUCT}`;
      },
      guard: (check) => {
        if (isHere()) isDirty = check;
      },
      later: (act, pause) => {
        setTimeout(() => isHere() && act(), pause);
      },
      until: (isDone) =>
        context.later(
          () =>
            isDone()
              .catch(() => false)
              .then((done) => (done ? context.reload() : context.until(isDone))),
          PAUSE_MS,
        ),
    };
    document.title = `${found?.route.title ?? "Not found"} · ${PRODUCT}`;
    const load = async () => {
      const file = await found?.route.load().catch(explain);
      return (isHere() && file?.show(context)) || "";
    };
    shell.open(found?.route ?? null, context, load);
  };
  addEventListener("hashchange", open);
  // A link to the present page reads it again.
  addEventListener("click", ({ target }) => {
    if (/** @type {Element} */ (target).closest("a")?.href === location.href && !isDirty()) open();
  });
  addEventListener("beforeunload", (event) => {
    if (isDirty()) event.preventDefault();
  });
  open();
}

/** @param {unknown} error why a page's module is not there @returns {never} */
function explain(error) {
  throw error instanceof TypeError
    ? new NotLoaded("This page could not be loaded. Check the connection and try again.")
    : error;
}

/** @param {string} path the present page is left at once, or read again */
export function go(path) {
  const href = path.replace(/^#?/, "#");
  if (location.hash !== href) history.pushState(null, "", href);
  dispatchEvent(new Event("hashchange"));
}

/**
 * @param {string} tenant
 * @param {string} page
 * @param {Record<string, string | number | undefined | null>} [query] the address of a page of a
 *   tenant
 */
export function to(tenant, page, query = {}) {
  const entries = Object.entries(query).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  const text = new URLSearchParams(entries.map(([key, value]) => [key, String(value)])).toString();
  return `#/t/${tenant}/${page}${text ? `?${text}` : ""}`;
}
