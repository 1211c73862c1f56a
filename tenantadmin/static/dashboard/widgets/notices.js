// Notices: what was done, what failed, and which revision was published.

import { h } from "../dom.js";

/** @param {string} [which] */
export const forgetNotices = (which = "*") =>
  notices.querySelectorAll(`:scope > ${which}`).forEach((one) => one.remove());

const notices = h("div.notices", { "aria-live": "polite" });
document.body.prepend(notices);

/**
 * @param {string} text
 * @param {"" | "error" | "revision"} [kind] a notice of a revision stands above the page until the
 *   page is left
 * @param {Child} [act] what one may do about it
 */
export function notify(text, kind = "", act) {
  // What succeeded before signing out is of no use after it.
  const isError = kind === "error";
  if (!isError && document.querySelector("#app.plain")) return;
  forgetNotices(".revision");
  forgetNotices(`[data-text="${CSS.escape(text)}"]`);
  const notice = notices.appendChild(
    h(
      "div",
      { class: `notice ${kind}`, role: isError && "alert", "data-text": text },
      h("span.grow", text),
      act,
      h(
        "button",
        { type: "button", class: "close", "aria-label": "Dismiss", onclick: () => notice.remove() },
        "×",
      ),
    ),
  );
  if (kind !== "revision") setTimeout(() => notice.remove(), isError ? 15_000 : 5000);
}
