// The terms of service, for a user who has not accepted the present ones.

import { call, mustAcceptTerms, renew, send, signOut } from "../api.js";
import { ago } from "../format.js";
import { markdown } from "../markdown.js";
import { button, go, h } from "../ui.js";

/** @type {Show} */
export async function show({ query }) {
  const text = await (
    await send("GET /tos", {}, { anonymous: true, accept: "text/markdown" })
  ).text();
  const accept = async () => {
    await call("POST /users/{email}/tos", { email: "me", body: { markdown: text } });
    await renew();
    go(query.get("to") ?? "/");
  };
  const leave = async () => {
    await signOut();
    go("/signin?out=1");
  };
  return h(
    "div.card.terms",
    h("h1", "Terms of service"),
    mustAcceptTerms() && (await changes(text)),
    h(
      "div.prose.scroll",
      { tabindex: 0, role: "region", "aria-label": "Terms of service" },
      markdown(text),
    ),
    mustAcceptTerms()
      ? h("div.row.end", button("Sign out", leave), button("Accept and go on", accept, "primary"))
      : h("a", { href: "#/" }, "Back"),
  );
}

/**
 * @param {string} text the paragraphs that differ from the text that the user accepted last, if any
 */
async function changes(text) {
  const {
    acknowledgements: [last],
  } = await call("GET /users/{email}/tos", { email: "me" });
  if (!last) return null;
  const before = blocks(
    await (await send("GET /tos/{md5}", { md5: last.hash }, { accept: "text/markdown" })).text(),
  );
  const now = blocks(text);
  const [added, gone] = [
    now.filter((one) => !before.includes(one)),
    before.filter((one) => !now.includes(one)),
  ];
  return h(
    "div.callout.prose",
    h(
      "p",
      h("strong", "The terms have changed."),
      ` You accepted the ones before ${ago(last.acknowledgedAt)}. ${added.length ? "New or changed:" : ""}`,
    ),
    markdown(added.join("\n\n")),
    gone.length > 0 &&
      h("details", h("summary", "What was there before"), markdown(gone.join("\n\n"))),
  );
}

/** @param {string} text its paragraphs */
const blocks = (text) =>
  text
    .trim()
    .split(/\n\s*\n/)
    .map((one) => one.trim());
