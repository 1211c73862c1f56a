// Where the service is (<meta name="api">; empty: the host of the page), and the scripts of others.

import { h } from "./dom.js";

/** @param {string} name */
function meta(name) {
  return document.querySelector(`meta[name="${name}"]`)?.getAttribute("content") ?? "";
}

export const API = meta("api").replace(/\/+$/, "");

/** The name of the product. */
export const PRODUCT = meta("application-name");

/** The page of the API, with the guides. */
export const DOCS = `${API}/docs`;

/** In development: the folder that mails are written to. */
export const MAIL_FOLDER = meta("mail-folder");

/** The address of this page without query and fragment: where signing in returns to. */
export const HOME = location.origin + location.pathname;

/** @param {string} path below the folder of static files */
export function staticUrl(path) {
  return new URL(`../${path}`, import.meta.url).href;
}

/** @type {Map<string, Promise<void>>} */
const loading = new Map();

/** @param {string} path load a classic script once; they come together, and run in order */
export function loadScript(path) {
  let promise = loading.get(path);
  if (!promise) {
    promise = new Promise((resolve, reject) => {
      const script = h("script", {
        src: staticUrl(path),
        onload: () => resolve(),
        onerror: () => {
          loading.delete(path);
          script.remove();
          reject(new Error(`${path} could not be loaded.`));
        },
      });
      script.async = false;
      document.head.append(script);
    });
    loading.set(path, promise);
  }
  return promise;
}

/** @param {string} path load a style sheet once */
export function loadStyle(path) {
  const href = staticUrl(path);
  if (!document.querySelector(`link[href="${href}"]`))
    document.head.prepend(h("link", { rel: "stylesheet", href }));
}
