// Staff come in from the admin site. It gets the challenge of a secret of this tab, and sends a code
// back that is of no use without the secret.

import { call } from "../api.js";
import { forgetPerson } from "../people.js";
import { beginSignIn, claims, expiry, session, store } from "../session.js";
import { makeChallenge, openingPage, staff, takeSecret } from "../staff.js";
import { a, empty, h } from "../ui.js";

/** @type {Show} */
export async function show({ query }) {
  const tenant = query.get("tenant");
  if (tenant) {
    const [reason, challenge] = [query.get("reason") ?? "", await makeChallenge()];
    location.replace(openingPage(tenant, query.get("to") ?? undefined, { reason, challenge }));
    return h("div");
  }
  const to = query.get("to") ?? "";
  const [, , id] = to.split("/");
  const { secret, waiting } = takeSecret();
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
  // Staff who proved their second factor go on with what waited for it, and the former session ends.
  const [before, held] = [staff(), session()];
  const isSame = before?.tenant === id && claims().sub === claims(answer.access_token).sub;
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
  if (before && held)
    await call("POST /auth/logout", { body: { token: held.refresh } }, { anonymous: true }).catch(
      () => {},
    );
  location.replace(`#${to}`);
  if (waiting && isSame) {
    beginSignIn(waiting, true);
    location.reload();
  }
  return h("div");
}
