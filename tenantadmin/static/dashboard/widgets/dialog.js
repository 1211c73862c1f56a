// Dialogs: a question whose answer does something.

import { fill, h } from "../dom.js";
import { showAtFields } from "../refusals.js";
import { button, copyable, failure } from "./basics.js";

/** @param {string} text @param {...Child} more show a token, which the service shows once */
export const showToken = (text, ...more) =>
  ask({
    title: "Your new token",
    action: "Done",
    cancel: "",
    wide: true,
    run: () => {},
    body: h(
      "div.stack",
      h("p", "It is shown only now. Keep it where programs keep secrets."),
      copyable(text, "Token"),
      ...more,
    ),
  });

/**
 * Ask in a dialog. Resolves to whether the action ran; its error keeps the dialog open. `then`
 * follows when it ran. While something is `missing`, the button is off, and says so.
 * @param {Question} question
 * @returns {Promise<boolean>}
 */
export function ask({
  title,
  body,
  action,
  danger,
  run,
  then,
  wide,
  beside: more,
  missing,
  cancel = "Cancel",
}) {
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
    const dialog = h(
      "dialog",
      {
        class: wide && "wide",
        "aria-label": title,
        onchange: check,
        onclose: () => {
          dialog.remove();
          resolve(done);
        },
      },
      h("h2", { tabindex: -1 }, title),
      h("div.dialog-body", body),
      h(
        "div.foot",
        problem,
        h("div.row.end", more, cancel && button(cancel, () => dialog.close()), act),
      ),
    );
    check();
    dialog.addEventListener(
      "keydown",
      ({ key, target }) =>
        key === "Enter" &&
        target instanceof HTMLInputElement &&
        target.type !== "checkbox" &&
        act.click(),
    );
    document.body.appendChild(dialog).showModal();
    // One types in a field that is first, and otherwise reads from the heading on.
    const first = dialog.querySelector(".dialog-body :is(input, select, [tabindex])");
    /** @type {HTMLElement} */ (
      first?.matches("[tabindex], [type=checkbox]") === false ? first : dialog.firstElementChild
    ).focus();
    dialog.scrollTop = 0;
  });
}
