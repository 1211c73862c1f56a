// The first steps of a tenant, each with its form in place. The page follows what happens elsewhere by itself.

import { call } from "../api.js";
import { API } from "../config.js";
import { TOOLS, factsOf, howTo, targetOf } from "../connect.js";
import { fill, h } from "../dom.js";
import { STEPS, readSetup } from "../firsthour.js";
import * as f from "../format.js";
import { can, person } from "../people.js";
import { to } from "../router.js";
import { STARTERS, withStarters } from "../starters.js";
import { putConfig } from "../tenantconfig.js";
import { a, badge, button, copyable, field, input, notify, select, showToken } from "../ui.js";
import { commentInput } from "./rules-edit.js";

/** @typedef {import("../firsthour.js").StepId} StepId */
/** @typedef {(tenant: string, changed: () => void) => Promise<import("../dom.js").Child>} Step */

/** The shortest and the longest pause between two looks, in ms: the log of a request is there within a minute. */
const [SHORTEST_MS, LONGEST_MS] = [5000, 60_000];
const TOKEN_DAYS = 365;

/** @type {import("../router.js").Show} */
export async function show({ tenant, query, signal, onLeave }) {
  const head = h("div", null);
  const list = h("ol", { class: "steps" });
  /** @type {Map<StepId, {element: HTMLDetailsElement, state: HTMLElement}>} */
  const shown = new Map();
  let wanted = /** @type {StepId | null} */ (query.get("step"));
  let pause = SHORTEST_MS;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let last = "";

  const draw = (/** @type {Contract.Setup} */ setup) => {
    const done = setup.steps.filter((one) => one.done).length;
    fill(head, h("p", { class: "muted", role: "status" }, setup.ready ? "Everything is set up." : `${done} of ${setup.steps.length} steps are done.`));
    for (const step of setup.steps) {
      let entry = shown.get(step.id);
      if (!entry) {
        entry = stepOf(tenant, step.id, look);
        shown.set(step.id, entry);
        list.append(h("li", null, entry.element));
      }
      fill(entry.state, step.done ? badge("done", "good") : badge("to do"), step.at && h("span", { class: "muted small" }, " ", f.ago(step.at)));
    }
    const next = setup.steps.find((one) => !one.done)?.id ?? null;
    const target = wanted ?? next;
    wanted = null;
    for (const [id, { element }] of shown) if (!element.contains(document.activeElement) || id === target) element.open = id === target;
  };
  const look = async () => {
    clearTimeout(timer);
    if (document.hidden || signal.aborted) return;
    try {
      const setup = await readSetup(tenant, signal);
      const now = JSON.stringify(setup.steps.map((one) => one.done));
      pause = now === last ? Math.min(pause * 1.2, LONGEST_MS) : SHORTEST_MS;
      if (now !== last) draw(setup);
      last = now;
      if (setup.ready) return;
    } catch (error) {
      if (!last) throw error;
      pause = LONGEST_MS;
    }
    clearTimeout(timer);
    if (!signal.aborted) timer = setTimeout(look, pause);
  };
  const seen = () => { if (!document.hidden) look().catch(() => {}); };
  document.addEventListener("visibilitychange", seen);
  onLeave(() => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
  });
  await look();
  return h("div", null, h("header", { class: "page-head" }, h("div", null, h("h1", null, "First steps"), head)), list);
}

/**
 * @param {string} tenant
 * @param {StepId} id
 * @param {() => Promise<void>} look
 */
function stepOf(tenant, id, look) {
  const body = h("div", { class: "pad stack" });
  const state = h("span", null);
  const element = /** @type {HTMLDetailsElement} */ (h("details", { class: "panel", id: `step-${id}` }, h("summary", { class: "panel-head" }, h("h2", null, STEPS[id]), state), body));
  const redraw = () => FORMS[id](tenant, async () => {
    await look();
    if (element.open) await redraw();
  }).then((node) => fill(body, node), (error) => fill(body, error.message));
  element.addEventListener("toggle", () => element.open && redraw());
  return { element, state };
}

/** @param {string} tenant */
const configOf = (tenant) => call("GET /config/tenants/{tenant}/config", { tenant });

const forWriters = () => h("p", { class: "muted" }, "An admin or owner of the tenant does this.");

/** @param {string} label @param {HTMLElement[]} fields @param {() => any} run */
const form = (label, fields, run) => {
  const act = button(label, run, "primary");
  return h("form", { class: "stack narrow", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); act.click(); } }, fields, h("div", null, act));
};

/** @type {Record<StepId, Step>} */
const FORMS = {
  async address(tenant, changed) {
    const config = await configOf(tenant);
    const [host] = config.fqdns;
    if (host) return [h("p", null, "Programs connect to this host in place of the warehouse:"), copyable(host, "Address")];
    if (!can(tenant, "write")) return forWriters();
    const name = input("fqdn", "", { required: true, placeholder: "reports.example.com" });
    return form("Claim", [field("Host name", name, "Under a domain of your account, or under the domain of the service.")], async () => {
      await putConfig(tenant, { ...config, fqdns: [name.value.trim()] });
      await changed();
    });
  },

  async warehouse(tenant, changed) {
    const config = await configOf(tenant);
    const house = config.warehouse;
    const now = house && h("p", null, `Statements go to ${house.serverHostname} (${house.adapterType}). `, a(to(tenant, "config"), "Configuration"));
    if (!can(tenant, "write")) return now ?? forWriters();
    const text = /** @type {HTMLTextAreaElement} */ (h("textarea", { name: "text", rows: 3, class: "mono", spellcheck: "false", autocomplete: "off", placeholder: "jdbc:databricks://dbc-1.cloud.databricks.com:443;httpPath=/sql/1.0/warehouses/a1" }));
    const found = h("div", { "aria-live": "polite" });
    const read = async () => {
      const connection = await call("POST /config/warehouse/parse", { body: { text: text.value.trim() } });
      // It may hold a password.
      text.value = "";
      const use = button("Use this connection", async () => {
        const { credentialRef, perUserTables } = house ?? {};
        await putConfig(tenant, { ...config, warehouse: { ...connection, credentialRef, perUserTables } });
        notify("Saved.");
        await changed();
      }, "primary");
      fill(found, h("dl", { class: "facts" }, Object.entries(connection).map(([name, value]) => [h("dt", null, h("code", null, name)), h("dd", null, value)])), use);
    };
    return [now, h("div", { class: "stack narrow" }, field("URL, JDBC string or key words of the warehouse", text, "As its own tools show it. Passwords in it are dropped."), h("div", null, button("Read", read))), found];
  },

  async token(tenant, changed) {
    if (!can(tenant, "write")) return forWriters();
    const name = input("name", "Gateway", { required: true, maxlength: 100 });
    const expiresAt = new Date(Date.now() + TOKEN_DAYS * 86_400_000).toISOString();
    return [h("p", null, "The Gateway reads its rules and announces its log with a token of your own. It lasts a year and reaches this tenant alone."),
      form("Make the token", [field("Name", name)], async () => {
        const { token } = await call("POST /users/{email}/tokens", { email: "me", body: { name: name.value.trim(), scopes: ["config:read", "cache-admin", "logs:notify"], tenants: [tenant], expiresAt } });
        await showToken(["TENANTADMIN_URL", API || location.origin, "TENANTADMIN_PAT", token, "TENANT", tenant].map((text, index) => (index % 2 ? `=${text}\n` : text)).join(""),
          h("p", { class: "muted small" }, "Start the Gateway with these variables."));
        await changed();
      })];
  },

  async "first-request"(tenant) {
    const [config, who] = await Promise.all([configOf(tenant), person()]);
    const target = targetOf(config, who.email);
    if (!target) return h("p", { class: "muted" }, "First the address and the warehouse.");
    const tool = select("tool", TOOLS.map((name) => [name, name]), TOOLS[0]);
    const how = h("div", null);
    const draw = () => fill(how, copyable(howTo(tool.value, target), tool.value));
    tool.addEventListener("change", draw);
    draw();
    return [h("dl", { class: "facts" }, factsOf(target).map(([name, value]) => [h("dt", null, name), h("dd", null, value)])),
      h("div", { class: "narrow" }, field("Connect with", tool, "The Gateway tells who asks by the token.")), how, h("p", { class: "muted" }, "This step is done within a minute of the first request.")];
  },

  async "first-rule"(tenant, changed) {
    const stored = await call("GET /config/tenants/{tenant}/rules", { tenant });
    const now = stored.rules.length > 0 && h("p", null, f.count(stored.rules.length, "rule"), ": ", a(to(tenant, "rules"), "Rules"));
    if (!can(tenant, "write")) return now || forWriters();
    const tables = input("tables", "", { placeholder: "ref.*, sales.countries" });
    const boxes = STARTERS.map((rule) => /** @type {HTMLInputElement} */ (h("input", { type: "checkbox", name: rule.id, checked: !rule.conditions.tables })));
    tables.addEventListener("input", () => { boxes[0].checked = tables.value.trim() !== ""; });
    const comment = commentInput();
    comment.value = "Starter rules";
    return [now, form("Publish", [h("fieldset", null, h("legend", null, "Rules to start with"), STARTERS.map((rule, index) => h("label", { class: "check" }, boxes[index], h("span", null, h("strong", null, rule.name), h("span", { class: "muted small" }, ` ${rule.description}`))))),
      field("Reference tables", tables, "Names or patterns, separated by commas."), field("Comment", comment)], async () => {
      const chosen = new Set(STARTERS.filter((_, index) => boxes[index].checked).map((rule) => rule.id));
      const names = tables.value.split(",").map((one) => one.trim()).filter(Boolean);
      if (chosen.has(STARTERS[0].id) && !names.length) throw new Error("Name the reference tables.");
      const rules = withStarters(stored.rules, chosen, names);
      if (rules.length === stored.rules.length) throw new Error("Choose a rule that is not there yet.");
      await call("PUT /config/tenants/{tenant}/rules", { tenant, body: { rules, seq: stored.seq, cacheBust: stored.cacheBust }, comment: comment.value });
      notify("Published.");
      await changed();
    })];
  },

  async "first-hit"(tenant) {
    return h("p", null, "Send the same statement twice. The Gateway knows a new rule after some seconds; the second request is a hit. ", a(to(tenant, "traffic"), "What the requests did"));
  },

  async people(tenant, changed) {
    if (!can(tenant, "owner")) return h("p", { class: "muted" }, "Owners invite people.");
    const email = input("email", "", { type: "email", required: true, placeholder: "name@example.com" });
    const role = select("role", [["member", "member: reads"], ["admin", "admin: writes too"], ["owner", "owner: manages members too"]], "member");
    return [form("Invite", [field("Email", email, "The address gets a mail. It has 14 days to accept."), field("Role", role)], async () => {
      await call("POST /config/tenants/{tenant}/invitations", { tenant, body: { email: email.value.trim(), role: /** @type {Contract.MembershipRole} */ (role.value) } });
      notify(`Invited ${email.value.trim()}.`);
      await changed();
    }), h("p", { class: "muted" }, "The step is done when the first person accepts. ", a(to(tenant, "members"), "Members"))];
  },
};
