// The signed-in user: name, digests by mail, personal access tokens, sessions.

import { call, signOut } from "../api.js";
import { API, DOCS } from "../config.js";
import * as f from "../format.js";
import { savingSelect, whenAsked } from "../forms.js";
import { NAME } from "../pats.js";
import { forgetPerson, person, tenants } from "../people.js";
import { keptTenant } from "../session.js";
import {
  a,
  acts,
  age,
  ask,
  badge,
  beside,
  button,
  checkbox,
  copyable,
  field,
  fine,
  go,
  h,
  input,
  notify,
  pageHead,
  select,
  showToken,
  table,
  tablePanel,
  text,
} from "../ui.js";

/** @type {Partial<Record<Contract.Scope, string>>} */
const SCOPES = {
  "config:read": "read rules and configuration",
  "config:write": "change them",
  "logs:read": "read requests",
  "logs:query": "run SQL",
  "analytics:read": "read summaries, savings and digests",
  "analytics:numbers": "read totals, savings, recommendations and digests alone",
  "analytics:users": "see names of users in them",
  "cache-admin": "invalidate results",
};

const ME = { email: "me" };

/** @type {Texts} */
const FREQUENCIES = { off: "none", daily: "every day", weekly: "every week" };

/**
 * @type {Partial<Record<Contract.Scope, string>>} the request to try with a token: the first scope
 *   of this list that the token has decides. Its path has * for the tenant; the path for SQL goes
 *   on with the command, up to the last quote
 */
const FIRST = {
  "logs:query": `/tenants/*/query' -H 'Content-Type: application/json' -d '{"sql": "SELECT cacheStatus, count(*) FROM proxy_logs WHERE day = '\\''${f.yesterday()}'\\'' GROUP BY 1"}`,
  "config:read": "/config/tenants/*/rules",
  "analytics:read": "/tenants/*/verdict",
  "analytics:numbers": "/tenants/*/verdict",
  "logs:read": "/tenants/*/logs",
  "cache-admin": "/tenants/*/invalidation-markers",
};

/** @type {Show} */
export async function show(context) {
  const { reload } = context;
  const [who, all, { digests }, { tokens }, { sessions }] = await Promise.all([
    person(),
    tenants(),
    call("GET /users/{email}/digests", ME),
    call("GET /users/{email}/tokens", ME),
    call("GET /users/{email}/sessions", ME),
  ]);
  const names = new Map(all.map(({ id, name }) => [id, name]));
  const where = (/** @type {Contract.Pat} */ { tenants: ids }) =>
    ids.map((id) => names.get(id) ?? id).join(", ") || f.NONE;
  const revoke = (/** @type {Contract.Pat} */ token) =>
    ask({
      title: `Revoke “${token.name}”?`,
      body: "What uses it stops working within seconds.",
      action: "Revoke",
      danger: true,
      then: reload,
      run: () => call("DELETE /users/{email}/tokens/{pat_id}", { ...ME, pat_id: token.id }),
    });
  const rotate = async (/** @type {Contract.Pat} */ one) => {
    const { token } = await call("POST /users/{email}/tokens/{pat_id}/rotate", {
      ...ME,
      pat_id: one.id,
      body: {},
    });
    await showToken(token, fine("The former secret works for a day."));
    reload();
  };
  const end = async (/** @type {Contract.Session} */ one) => {
    await call("DELETE /users/{email}/sessions/{session_id}", { ...ME, session_id: one.id });
    reload();
  };
  const everywhere = () =>
    ask({
      title: "Sign out everywhere?",
      body: "All your sessions end, this one too. Personal access tokens stay.",
      action: "Sign out everywhere",
      danger: true,
      run: () => signOut(true),
      then: () => {
        forgetPerson();
        go("/signin?out=1");
      },
    });
  const rename = async () => {
    await call("PUT /users/{email}", { ...ME, body: { displayName: name.value.trim() } });
    forgetPerson();
    notify("Saved.");
    reload();
  };
  const add = () => create(all, reload);
  whenAsked(context, add);
  const [ours, own] = [true, false].map((isOurs) =>
    tokens.filter((one) => (one.name === NAME) === isOurs),
  );
  const used = age("Last used", "lastUsedAt");
  const name = input("displayName", who.name === who.email ? "" : who.name, {
    "aria-label": "Your name",
    maxlength: 200,
  });
  return h(
    "div",
    pageHead("Your account", who.email, name, button("Save", rename)),
    tablePanel(
      "Digests by mail",
      beside("What happened in a day or a week"),
      [
        text("Tenant", "tenantName", (name) => h("strong", name)),
        { head: "Mails", number: true, cell: frequency },
      ],
      digests,
      { none: "There is no tenant whose digests you may read." },
    ),
    tablePanel(
      "Personal access tokens",
      [a(DOCS, "API and guides"), button("New token", add, "small")],
      [
        {
          head: "Name",
          cell: (row) => [h("strong", row.name), " ", h("code.muted.small", `${row.prefix}…`)],
          sort: (row) => row.name,
        },
        {
          head: "Scopes",
          cell: (row) => row.scopes.map((/** @type {string} */ scope) => [badge(scope), " "]),
        },
        { head: "Tenants", cell: where, class: "value" },
        used,
        age("Ends", "expiresAt"),
        acts((row) => [
          button("Renew", () => rotate(row), "quiet small"),
          button("Revoke", () => revoke(row), "quiet small"),
        ]),
      ],
      own,
      { none: "You have none. Programs use them in place of signing in." },
    ),
    tablePanel(
      "Sessions",
      button("Sign out everywhere", everywhere, "small danger"),
      [
        {
          head: "Browser",
          class: "value",
          cell: (row) => [browser(row.userAgent), row.current && [" ", badge("this one", "info")]],
        },
        text("Address", "address"),
        { head: "Through", cell: (row) => row.provider || "mailed link" },
        { ...used, cell: (row) => (row.current ? "now" : used.cell(row)) },
        acts((row) => !row.current && button("End", () => end(row), "quiet small")),
      ],
      sessions,
      { sorted: 3 },
    ),
    ours.length > 0 &&
      h(
        "details.as-table",
        h(
          "summary",
          `${f.count(ours.length, "token")} of these sessions. The dashboard makes one for the list of tenants and one for each tenant that you open; it ends with the session, or after a day.`,
        ),
        table(
          [
            { head: "Tenants", cell: where, class: "value" },
            used,
            age("Ends", "expiresAt"),
            acts((row) => button("Revoke", () => revoke(row), "quiet small")),
          ],
          ours,
          { label: "Tokens of the dashboard" },
        ),
      ),
  );
}

/** @param {Contract.DigestPreference} preference */
const frequency = ({ tenantId, tenantName, frequency }) =>
  savingSelect("frequency", FREQUENCIES, frequency, `Mails about ${tenantName}`, async (wanted) => {
    await call("PUT /users/{email}/digests/{tenant}", {
      ...ME,
      tenant: tenantId,
      body: { frequency: /** @type {Contract.DigestFrequency} */ (wanted) },
    });
    notify(
      wanted === "off"
        ? `No more mails about ${tenantName}.`
        : `You get a mail ${FREQUENCIES[wanted]} about ${tenantName}.`,
    );
  });

/** @param {string} agent */
const browser = (agent) => {
  const name = /(Firefox|Edg|OPR|Chrome|Safari)\/(\d+)/.exec(agent);
  const system = /Windows|Mac OS X|Android|iPhone|Linux/.exec(agent);
  return name
    ? `${name[1].replace("Edg", "Edge")} ${name[2]}${system ? ` on ${system[0]}` : ""}`
    : agent.slice(0, 40) || "A program without a name";
};

/** @param {Tenant[]} all @param {() => void} reload */
async function create(all, reload) {
  const name = input("name", "", { maxlength: 100, placeholder: "What it is for", required: true });
  const tenant = select(
    "tenant",
    all.map(({ id, name }) => [id, name]),
    all.find((one) => one.id === keptTenant())?.id ?? all[0]?.id ?? "",
  );
  const days = select("days", { 30: "30 days", 90: "90 days", 365: "a year" }, "90");
  const boxes = Object.keys(SCOPES).map((scope) => checkbox(scope, scope === "config:read"));
  let token = "";
  await ask({
    title: "New personal access token",
    action: "Create",
    body: [
      field("Name", name),
      field("Tenant", tenant),
      field("Lasts", days),
      h(
        "fieldset",
        h("legend", "Scopes"),
        boxes.map((box) =>
          h(
            "label.check",
            box,
            h("code", box.name),
            beside(SCOPES[/** @type {Contract.Scope} */ (box.name)]),
          ),
        ),
      ),
    ],
    run: async () => {
      const expiresAt = new Date(Date.now() + Number(days.value) * 86_400_000).toISOString();
      const scopes = /** @type {Contract.Scope[]} */ (
        boxes.filter((box) => box.checked).map((box) => box.name)
      );
      token = (
        await call("POST /users/{email}/tokens", {
          ...ME,
          body: {
            name: name.value.trim(),
            scopes,
            tenants: tenant.value ? [tenant.value] : [],
            expiresAt,
          },
        })
      ).token;
    },
    then: async () => {
      const [, first] =
        Object.entries(FIRST).find(([scope]) =>
          boxes.some((box) => box.checked && box.name === scope),
        ) ?? [];
      await showToken(
        token,
        first &&
          tenant.value && [
            h("p", "To try it in a shell:"),
            copyable(curl(token, first.replace("*", tenant.value)), "A first request"),
          ],
        fine(
          "A program exchanges the token for an access token of some minutes, as this command does, and sends that with its requests. ",
          a(DOCS, "All operations of the API"),
        ),
      );
      reload();
    },
  });
}

/** @param {string} token @param {string} path a command that works as pasted */
const curl = (token, path) => {
  const home = API || location.origin;
  return `curl -s '${home}${path}' -H "Authorization: Bearer $(curl -s ${home}/oauth/token -d grant_type=pat_exchange -d pat=${token} | sed 's/.*"access_token": *"\\([^"]*\\)".*/\\1/')"`;
};
