// The signed-in user: name, digests by mail, personal access tokens, sessions.

import { call, signOut } from "../api.js";
import { h } from "../dom.js";
import * as f from "../format.js";
import { forgetPerson, person, tenants } from "../people.js";
import { go } from "../router.js";
import { ask, badge, button, field, input, notify, panel, select, sentence, showToken, table } from "../ui.js";

/** @type {Contract.Scope[]} */
const SCOPES = ["config:read", "config:write", "logs:read", "logs:query", "analytics:read", "analytics:users", "cache-admin"];

const FREQUENCIES = /** @type {[Contract.DigestFrequency, string][]} */ ([["off", "none"], ["daily", "every day"], ["weekly", "every week"]]);

/** @type {import("../router.js").Show} */
export async function show({ reload }) {
  const email = "me";
  const [who, all, { digests }, { tokens }, { sessions }] = await Promise.all([
    person(), tenants(), call("GET /users/{email}/digests", { email }),
    call("GET /users/{email}/tokens", { email }), call("GET /users/{email}/sessions", { email }),
  ]);
  const names = new Map(all.map((entry) => [entry.id, entry.name]));
  const revoke = async (/** @type {Contract.Pat} */ token) => {
    const done = await ask({ title: `Revoke “${token.name}”?`, body: "What uses it stops working within seconds.", action: "Revoke", danger: true,
      run: () => call("DELETE /users/{email}/tokens/{pat_id}", { email: "me", pat_id: token.id }) });
    if (done) reload();
  };
  const end = async (/** @type {Contract.Session} */ one) => {
    await call("DELETE /users/{email}/sessions/{session_id}", { email: "me", session_id: one.id });
    reload();
  };
  const everywhere = async () => {
    const done = await ask({ title: "Sign out everywhere?", body: "All your sessions end, this one too. Personal access tokens stay.", action: "Sign out everywhere", danger: true, run: () => signOut(true) });
    if (!done) return;
    forgetPerson();
    go("/signin");
  };
  const rename = async () => {
    await call("PUT /users/{email}", { email: "me", body: { displayName: name.value.trim() } });
    forgetPerson();
    notify("Saved.");
    reload();
  };
  const name = input("displayName", who.name === who.email ? "" : who.name, { "aria-label": "Your name", maxlength: 200 });
  return h("div", null,
    h("header", { class: "page-head" }, h("div", null, h("h1", null, "Your account"), h("p", { class: "muted" }, who.email)), h("div", { class: "row" }, name, button("Save", rename))),
    panel("Digests by mail", h("span", { class: "muted small" }, "What happened in a day or a week"), digests.length ? table([
      { head: "Tenant", cell: (row) => h("strong", null, row.tenantName), sort: (row) => row.tenantName },
      { head: "Mails", number: true, cell: (row) => frequency(row) },
    ], digests, { label: "Digests by mail" }) : h("p", { class: "pad muted" }, "There is no tenant whose digests you may read.")),
    panel("Personal access tokens", button("New token", () => create(all, reload), "small"), tokens.length ? table([
      { head: "Name", cell: (row) => [h("strong", null, row.name), " ", h("code", { class: "muted small" }, `${row.prefix}…`)], sort: (row) => row.name },
      { head: "Scopes", cell: (row) => row.scopes.map((/** @type {string} */ scope) => [badge(scope), " "]) },
      { head: "Tenants", cell: (row) => row.tenants.map((/** @type {string} */ id) => names.get(id) ?? id).join(", ") || f.NONE },
      { head: "Last used", cell: (row) => f.ago(row.lastUsedAt), class: "nowrap", sort: (row) => row.lastUsedAt ?? "" },
      { head: "Ends", cell: (row) => f.ago(row.expiresAt), class: "nowrap", sort: (row) => row.expiresAt },
      { head: "Actions", hidden: true, number: true, cell: (row) => button("Revoke", () => revoke(row), "quiet small") },
    ], tokens, { label: "Personal access tokens" }) : h("p", { class: "pad muted" }, "You have none. Programs use them in place of signing in.")),
    panel("Sessions", button("Sign out everywhere", everywhere, "small danger"), table([
      { head: "Browser", cell: (row) => [browser(row.userAgent), row.current && [" ", badge("this one", "info")]] },
      { head: "Address", cell: (row) => row.address },
      { head: "Through", cell: (row) => row.provider || "mailed link" },
      { head: "Last used", cell: (row) => f.ago(row.lastUsedAt), class: "nowrap", sort: (row) => row.lastUsedAt },
      { head: "Actions", hidden: true, number: true, cell: (row) => !row.current && button("End", () => end(row), "quiet small") },
    ], sessions, { label: "Sessions", sorted: 3 })));
}

/** @param {Contract.DigestPreference} preference */
function frequency(preference) {
  const chosen = select("frequency", FREQUENCIES, preference.frequency, { "aria-label": `Mails about ${preference.tenantName}` });
  chosen.addEventListener("change", async () => {
    const wanted = /** @type {Contract.DigestFrequency} */ (chosen.value);
    try {
      await call("PUT /users/{email}/digests/{tenant}", { email: "me", tenant: preference.tenantId, body: { frequency: wanted } });
      preference.frequency = wanted;
      notify(wanted === "off" ? `No more mails about ${preference.tenantName}.` : `You get a mail ${chosen.selectedOptions[0].text} about ${preference.tenantName}.`);
    } catch (error) {
      notify(sentence(error), "error");
      chosen.value = preference.frequency;
    }
  });
  return chosen;
}

/** @param {string} agent */
const browser = (agent) => {
  const name = /(Firefox|Edg|OPR|Chrome|Safari)\/(\d+)/.exec(agent);
  const system = /(Windows|Mac OS X|Android|iPhone|Linux)/.exec(agent);
  return name ? `${name[1].replace("Edg", "Edge")} ${name[2]}${system ? ` on ${system[1]}` : ""}` : agent.slice(0, 40) || "unknown";
};

/**
 * @param {import("../people.js").Tenant[]} all
 * @param {() => void} reload
 */
async function create(all, reload) {
  const name = input("name", "", { maxlength: 100, placeholder: "What it is for" });
  const tenant = select("tenant", all.map((entry) => [entry.id, entry.name]), all[0]?.id ?? "");
  const days = select("days", [["30", "30 days"], ["90", "90 days"], ["365", "a year"]], "90");
  const boxes = SCOPES.map((scope) => /** @type {HTMLInputElement} */ (h("input", { type: "checkbox", name: scope, checked: scope === "config:read" })));
  /** @type {string} */
  let token = "";
  const done = await ask({
    title: "New personal access token", action: "Create",
    body: h("div", null, field("Name", name), field("Tenant", tenant), field("Lasts", days),
      h("fieldset", null, h("legend", null, "Scopes"), boxes.map((box) => h("label", { class: "check" }, box, h("code", null, box.name))))),
    run: async () => {
      const expiresAt = new Date(Date.now() + Number(days.value) * 86_400_000).toISOString();
      const scopes = SCOPES.filter((_, index) => boxes[index].checked);
      token = (await call("POST /users/{email}/tokens", { email: "me", body: { name: name.value.trim(), scopes, tenants: tenant.value ? [tenant.value] : [], expiresAt } })).token;
    },
  });
  if (!done) return;
  await showToken(token, h("p", { class: "muted small" }, "Programs exchange it: ", h("code", null, "POST /oauth/token"), " with ", h("code", null, "grant_type=pat_exchange"), "."));
  reload();
}
