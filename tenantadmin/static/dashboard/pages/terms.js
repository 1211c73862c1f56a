// The terms of service, for a user who has not accepted the present ones.

import { call, mustAcceptTerms, renew, send, signOut } from "../api.js";
import { markdown } from "../markdown.js";
import { button, go, h } from "../ui.js";

/** @type {Show} */
export async function show({ query }) {
  const text = await (await send("GET /tos", {}, { anonymous: true, accept: "text/markdown" })).text();
  const accept = async () => {
    await call("POST /users/{email}/tos", { email: "me", body: { markdown: text } });
    await renew();
    go(query.get("to") ?? "/");
  };
  const leave = async () => {
    await signOut(false);
    go("/signin");
  };
  return h("div.card.terms", h("h1", "Terms of service"),
    h("div.prose.scroll", { tabindex: 0, role: "region", "aria-label": "Terms of service" }, markdown(text)),
    mustAcceptTerms() ? h("div.row.end", button("Sign out", leave), button("Accept and go on", accept, "primary"))
      : h("a", { href: "#/" }, "Back"));
}
