// Tokens of a sign-in that this tab did not begin: a mailed link in a new tab, or a link that
// another person sent.

import { call } from "../api.js";
import { claims, store } from "../session.js";
import { button, fill, h } from "../ui.js";

/**
 * @param {Session} offered
 * @returns {Promise<void>} ask whether to sign in with these tokens, and do so
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
      call("POST /auth/logout", { body: { token: offered.refresh } }, { anonymous: true }).catch(
        () => {},
      );
      done();
    };
    app.className = "plain";
    fill(
      app,
      h(
        "main",
        h(
          "div.card.signin",
          h("h1", `Continue as ${sub}?`),
          h(
            "p",
            "This sign-in was not begun in this tab. If you did not ask for it, another person may have sent you the link.",
          ),
          here && h("p", `You are signed in as ${here}.`),
          button(`Continue as ${sub}`, accept, "primary wide"),
          button(here ? `Stay ${here}` : "Do not sign in", refuse, "wide"),
        ),
      ),
    );
  });
}
