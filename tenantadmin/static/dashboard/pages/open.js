// Staff come in from the admin site. It gets the challenge of a secret of this tab, and sends a code
// back that is of no use without the secret.

import { call } from "../api.js";
import { forgetPerson } from "../people.js";
import { expiry, store } from "../session.js";
import { makeChallenge, openingPage, takeSecret } from "../staff.js";
import { a, empty, h } from "../ui.js";

/** @type {Show} */
export async function show({ query }) {
  const tenant = query.get("tenant");
  if (tenant) {
    const page = openingPage(tenant, query.get("to") ?? undefined);
    location.replace(`${page}&challenge=${await makeChallenge()}`);
    return h("div");
  }
  const to = query.get("to") ?? "";
  const [, , id] = to.split("/");
  const secret = takeSecret();
  // The code does not stay in the address.
  history.replaceState(null, "", "#/open");
  if (!secret)
    return h(
      "div",
      h("h1", "Open a tenant"),
      empty("This was not begun in this tab.", id && a(openingPage(id), "Open it again")),
    );
  const answer = await call(
    "POST /oauth/token",
    {
      body: {
        grant_type: /** @type {const} */ ("authorization_code"),
        code: query.get("code") ?? "",
        code_verifier: secret,
      },
    },
    { anonymous: true },
  );
  store({
    access: answer.access_token,
    refresh: answer.refresh_token ?? "",
    expiresAt: expiry(answer),
    pats: {},
    staff: {
      tenant: id,
      name: query.get("name") ?? "",
      reason: query.get("reason") ?? "",
      until: query.get("until") ?? "",
    },
  });
  forgetPerson();
  location.replace(`#${to}`);
  return h("div");
}
