// Tokens of a sign-in that this tab did not begin: a mailed link in a new tab, or a link that another person sent.

import { call } from "../api.js";
import { fill, h } from "../dom.js";
import { claims, store } from "../session.js";
import { button } from "../ui.js";

/**
 * Ask whether to sign in with these tokens, and do so.
 * @param {import("../session.js").Session} offered
 * @returns {Promise<void>}
 */
export function ask(offered) {
  const app = /** @type {HTMLElement} */ (document.getElementById("app"));
  const { sub } = claims(offered.access);
  const here = claims().sub;
  return new Promise((done) => {
    const accept = () => {
      store(offered);
      done();
    };
    const refuse = () => {
      call("POST /auth/logout", { body: { token: offered.refresh } }, { anonymous: true }).catch(() => {});
      done();
    };
    app.className = "plain";
    fill(app, h("main", null, h("div", { class: "card signin" },
      h("h1", null, `Continue as ${sub}?`),
      h("p", null, "This sign-in was not begun in this tab. If you did not ask for it, another person may have sent you the link."),
      here && h("p", null, `You are signed in as ${here}.`),
      button(`Continue as ${sub}`, accept, "primary wide"),
      button(here ? `Stay ${here}` : "Do not sign in", refuse, "wide"))));
  });
}
