// Signing in: through an identity provider, or by a mailed link.

import { call } from "../api.js";
import { API, HOME, MAIL_FOLDER } from "../config.js";
import { fill, h } from "../dom.js";
import { go } from "../router.js";
import { beginSignIn, session } from "../session.js";
import { failure, input } from "../ui.js";

/** @type {import("../router.js").Show} */
export async function show(context) {
  if (session()) {
    go("/");
    return h("div", null);
  }
  const wanted = context.query.get("to") ?? "/";
  const target = `${HOME}#${wanted}`;
  const ways = await call("GET /auth/providers", {}, { anonymous: true });
  return h("div", { class: "card signin" },
    h("div", { class: "brand" }, h("span", { class: "mark", "aria-hidden": "true" }), "Gateway"),
    h("h1", null, "Sign in"),
    ways.providers.map((provider) => h("a", { class: "button wide", href: providerAddress(provider.id, target), onclick: () => beginSignIn() },
      `Continue with ${provider.name}`)),
    ways.providers.length > 0 && ways.magicLink && h("p", { class: "or" }, h("span", null, "or")),
    ways.magicLink ? linkForm(target) : null,
    !ways.magicLink && !ways.providers.length && h("p", { class: "muted" }, "No way of signing in is configured."));
}

/**
 * @param {string} provider
 * @param {string} target
 */
function providerAddress(provider, target) {
  return `${API}/auth/login?${new URLSearchParams({ provider, redirect: target })}`;
}

/** @param {string} target */
function linkForm(target) {
  const email = input("email", "", { type: "email", required: true, autocomplete: "email", placeholder: "you@example.com" });
  const send = /** @type {HTMLButtonElement} */ (h("button", { class: "button primary wide" }, "Mail me a sign-in link"));
  const outcome = h("div", { "aria-live": "polite" });
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    send.disabled = true;
    try {
      const body = { email: email.value.trim(), redirect: target };
      await call("POST /auth/magic-link", { body }, { anonymous: true });
      beginSignIn();
      fill(outcome, sent(email.value.trim()));
    } catch (error) {
      fill(outcome, failure(error));
    } finally {
      send.disabled = false;
    }
  };
  return h("form", { onsubmit: submit }, h("label", { class: "field" }, h("span", { class: "label" }, "Email"), email), send, outcome);
}

/** @param {string} email */
function sent(email) {
  return h("div", { class: "callout" },
    h("p", null, h("strong", null, "Check your mail."), ` A link for ${email} is on its way. It works once, for 15 minutes.`),
    MAIL_FOLDER && h("p", { class: "small" }, "This is a development service: mails are files in ",
      h("code", { class: "mail-folder" }, MAIL_FOLDER), ". The link of the newest, for a shell:"),
    MAIL_FOLDER && h("pre", { class: "code", tabindex: 0 }, `grep -ho 'http[^ ]*verify[^ ]*' "$(ls -t ${MAIL_FOLDER}/* | head -1)" | head -1`));
}
