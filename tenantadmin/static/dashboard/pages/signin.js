// Signing in: through an identity provider, or by a mailed link.

import { call } from "../api.js";
import { API, HOME, MAIL_FOLDER, PRODUCT } from "../config.js";
import { form } from "../forms.js";
import { beginSignIn, session } from "../session.js";
import { button, failure, field, fill, go, h, input } from "../ui.js";

/** @type {Show} */
export async function show(context) {
  const wanted = context.query.get("to") ?? "/";
  if (session()) {
    go(wanted);
    return h("div");
  }
  const target = `${HOME}#${wanted}`;
  const ways = await call("GET /auth/providers", {}, { anonymous: true });
  return h(
    "div.card.signin",
    h("div.brand", h("span.mark", { "aria-hidden": "true" }), PRODUCT),
    h("h1", "Sign in"),
    context.query.has("out") && h("p", { role: "status" }, "You are signed out."),
    ways.providers.map((provider) =>
      h(
        "a.button.wide",
        { href: providerAddress(provider.id, target), onclick: () => beginSignIn() },
        `Continue with ${provider.name}`,
      ),
    ),
    ways.providers.length > 0 && ways.magicLink && h("p.or", h("span", "or")),
    ways.magicLink ? linkForm(target, context.query) : null,
    !ways.magicLink &&
      !ways.providers.length &&
      h("p.muted", "No way of signing in is configured."),
  );
}

/** @param {string} provider @param {string} target */
function providerAddress(provider, target) {
  return `${API}/auth/login?${new URLSearchParams({ provider, redirect: target })}`;
}

/**
 * @param {string} target
 * @param {URLSearchParams} query the address to mail to, from the page of a used link
 */
function linkForm(target, query) {
  const email = input("email", query.get("email"), {
    type: "email",
    required: true,
    autocomplete: "email",
    placeholder: "you@example.com",
  });
  const send = h("button.button.primary.wide", "Mail me a sign-in link");
  const ask = h("div", field("Email", email), send);
  const outcome = h("div", { "aria-live": "polite" });
  const other = () => {
    ask.hidden = false;
    fill(outcome);
    email.select();
  };
  const submit = async () => {
    send.disabled = true;
    const to = email.value.trim();
    try {
      await call(
        "POST /auth/magic-link",
        { body: { email: to, redirect: target } },
        { anonymous: true },
      );
      beginSignIn();
      ask.hidden = true;
      fill(
        outcome,
        sent(to),
        h(
          "div.row",
          button("Mail another link", submit),
          button("Use another address", other, "quiet"),
        ),
      );
    } catch (error) {
      fill(outcome, failure(error));
    } finally {
      send.disabled = false;
    }
  };
  const isAsked = query.has("send") && email.value;
  query.delete("send");
  // Not again when the page is loaded again.
  if (isAsked) history.replaceState(null, "", `#/signin?${query}`);
  setTimeout(() => (isAsked ? submit() : email.focus()));
  return form("", submit, ask, outcome);
}

/** @param {string} email */
function sent(email) {
  return h(
    "div.callout",
    h(
      "p",
      h("strong", "Check your mail."),
      ` A link for ${email} is on its way. It works once, for 15 minutes.`,
    ),
    MAIL_FOLDER &&
      h(
        "p.small",
        "This is a development service: mails are files in ",
        h("code.mail-folder", MAIL_FOLDER),
        ". The newest link, for a shell:",
      ),
    MAIL_FOLDER &&
      h(
        "pre.code",
        { tabindex: 0 },
        `grep -ho 'http[^ ]*verify[^ ]*' $(ls -t ${MAIL_FOLDER}/*) | head -1`,
      ),
  );
}
