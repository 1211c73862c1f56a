// The first steps of a tenant, each with its form in place. The page follows what happens elsewhere
// by itself.

import { call, configOf, rulesOf } from "../api.js";
import { API } from "../config.js";
import { TOOLS, factsOf, howTo, targetOf } from "../connect.js";
import { STEPS, readSetup } from "../firsthour.js";
import * as f from "../format.js";
import { commentInput, form, invitation, names } from "../forms.js";
import { can, person, putConfig } from "../people.js";
import { spelled } from "../spellings.js";
import { STARTERS, withStarters } from "../starters.js";
import {
  a,
  area,
  badge,
  beside,
  button,
  checkbox,
  copyable,
  facts,
  field,
  fill,
  fine,
  h,
  input,
  notify,
  pageHead,
  select,
  showIn,
  showToken,
  to,
} from "../ui.js";

/** @typedef {(tenant: string, changed: () => void) => Promise<Child>} Step */

/** Pauses between two looks. */
const [SHORTEST_MS, LONGEST_MS] = [5000, 60_000];

/** @type {Show} */
export async function show({ tenant, query, signal }) {
  const status = h("span", { role: "status" });
  const list = h("ol.steps");
  const tables = h("div");
  /** @type {Map<StepId, {element: HTMLDetailsElement, state: HTMLElement}>} */
  const shown = new Map();
  let wanted = /** @type {StepId | null} */ (query.get("step"));
  let pause = SHORTEST_MS;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let last = "";

  const draw = (/** @type {Contract.Setup} */ setup) => {
    const done = setup.steps.filter((one) => one.done).length;
    fill(
      status,
      setup.ready ? "Everything is set up." : `${done} of ${setup.steps.length} steps are done.`,
    );
    for (const step of setup.steps) {
      let entry = shown.get(step.id);
      if (!entry) {
        entry = stepOf(tenant, step.id, look);
        shown.set(step.id, entry);
        list.append(h("li", entry.element));
      }
      fill(
        entry.state,
        step.done ? badge("done", "good") : badge(step.id === "people" ? "optional" : "to do"),
        step.at && beside(" ", f.ago(step.at)),
      );
    }
    fill(tables, spelled(setup.spellings, setup.spellingsComplete));
    const next = setup.steps.find((one) => !one.done)?.id ?? null;
    const target = wanted ?? next;
    wanted = null;
    for (const [id, { element }] of shown)
      if (!element.contains(document.activeElement) || id === target) element.open = id === target;
  };
  const lookOnce = async () => {
    clearTimeout(timer);
    if (document.hidden || signal.aborted) return;
    try {
      const setup = await readSetup(tenant, signal);
      const now = JSON.stringify([setup.steps.map((one) => one.done), setup.spellings]);
      pause = now === last ? Math.min(pause * 1.2, LONGEST_MS) : SHORTEST_MS;
      if (now !== last) draw(setup);
      last = now;
      if (setup.ready) return;
    } catch (error) {
      if (!last) throw error;
      pause = LONGEST_MS;
    }
    timer = setTimeout(look, pause);
  };
  // One after the other, or an older answer might come last.
  let looking = Promise.resolve();
  const look = () => (looking = looking.then(lookOnce, lookOnce));
  document.addEventListener("visibilitychange", () => look().catch(() => {}), { signal });
  await look();
  return h("div", pageHead("First steps", status), list, tables);
}

/** @param {string} tenant @param {StepId} id @param {() => Promise<void>} look */
function stepOf(tenant, id, look) {
  const body = h("div.pad.stack");
  const state = h("span");
  const element = h(
    "details.panel",
    { id: `step-${id}` },
    h("summary.panel-head", h("h2", STEPS[id]), state),
    body,
  );
  const redraw = () =>
    showIn(
      () =>
        FORMS[id](tenant, async () => {
          // The button that was pressed keeps a step open no longer.
          /** @type {HTMLElement} */ (document.activeElement).blur();
          await look();
          if (element.open) await redraw();
        }),
      body,
    );
  element.addEventListener("toggle", () => element.open && redraw());
  return { element, state };
}

const forWriters = () => h("p.muted", "An admin or owner of the tenant does this.");

/** @param {string} label @param {HTMLElement[]} fields @param {() => any} run */
const stepForm = (label, fields, run) => {
  const act = button(label, run, "primary");
  return form(".stack.narrow", () => act.click(), fields, h("div", act));
};

/** @type {Record<StepId, Step>} */
const FORMS = {
  async address(tenant, changed) {
    const config = await configOf(tenant);
    const [host] = config.fqdns;
    if (host)
      return [
        h("p", "Programs connect to this host in place of the warehouse:"),
        copyable(host, "Address"),
      ];
    if (!can(tenant, "write")) return forWriters();
    const name = input("fqdn", "", { required: true, placeholder: "reports.example.com" });
    return stepForm(
      "Claim",
      [
        field(
          "Host name",
          name,
          "Under a domain of your account, or under the domain of the service.",
        ),
      ],
      async () => {
        await putConfig(tenant, { ...config, fqdns: [name.value.trim()] });
        await changed();
      },
    );
  },

  async warehouse(tenant, changed) {
    const config = await configOf(tenant);
    const house = config.warehouse;
    // That of an assessment has a warehouse and no address.
    const now =
      house &&
      house.serverHostname !== house.adapterType &&
      h(
        "p",
        `Statements go to ${house.serverHostname} (${house.adapterType}). `,
        a(to(tenant, "config"), "Configuration"),
      );
    if (!can(tenant, "write")) return now ?? forWriters();
    const text = area("text", "", {
      autocomplete: "off",
      placeholder:
        "jdbc:databricks://dbc-1.cloud.databricks.com:443;httpPath=/sql/1.0/warehouses/a1",
    });
    const found = h("div", { "aria-live": "polite" });
    const read = async () => {
      const connection = await call("POST /config/warehouse/parse", {
        body: { text: text.value.trim() },
      });
      // It may hold a password.
      text.value = "";
      const use = button(
        "Use this connection",
        async () => {
          const { credentialRef, perUserTables, views, pricing } = house ?? {};
          await putConfig(tenant, {
            ...config,
            warehouse: { ...connection, credentialRef, perUserTables, views, pricing },
          });
          notify("Saved.");
          await changed();
        },
        "primary",
      );
      fill(
        found,
        facts(Object.entries(connection).map(([name, value]) => [h("code", name), value])),
        use,
      );
    };
    return [
      now,
      h(
        "div.stack.narrow",
        field(
          "URL, JDBC string or key words of the warehouse",
          text,
          "As its own tools show it. Passwords in it are dropped.",
        ),
        h("div", button("Read", read)),
      ),
      found,
    ];
  },

  async token(tenant, changed) {
    if (!can(tenant, "write")) return forWriters();
    const name = input("name", "Gateway", { required: true, maxlength: 100 });
    const expiresAt = new Date(Date.now() + 365 * 86_400_000).toISOString();
    return [
      h(
        "p",
        "The Gateway reads its rules and announces its log with a token of your own. It lasts a year and reaches this tenant alone.",
      ),
      stepForm("Make the token", [field("Name", name)], async () => {
        const { token } = await call("POST /users/{email}/tokens", {
          email: "me",
          body: {
            name: name.value.trim(),
            scopes: ["config:read", "cache-admin", "logs:notify"],
            tenants: [tenant],
            expiresAt,
          },
        });
        await showToken(
          `TENANTADMIN_URL=${API || location.origin}\nTENANTADMIN_PAT=${token}\nTENANT=${tenant}\n`,
          fine("Start the Gateway with these variables."),
        );
        await changed();
      }),
    ];
  },

  async "first-request"(tenant) {
    const [config, who] = await Promise.all([configOf(tenant), person()]);
    const target = targetOf(config, who.email);
    if (!target) return h("p.muted", "First the address and the warehouse.");
    const how = h("div");
    const draw = () => fill(how, copyable(howTo(tool.value, target), tool.value));
    const tool = select("tool", TOOLS, TOOLS[0], { onchange: draw });
    draw();
    return [
      facts(factsOf(target)),
      h("div.narrow", field("Connect with", tool, "The Gateway tells who asks by the token.")),
      how,
      h("p.muted", "This step is done within a minute of the first request."),
    ];
  },

  async "first-rule"(tenant, changed) {
    const stored = await rulesOf(tenant);
    const now =
      stored.rules.length > 0 &&
      h("p", f.count(stored.rules.length, "rule"), ": ", a(to(tenant, "rules"), "Rules"));
    if (!can(tenant, "write")) return now || forWriters();
    const tables = input("tables", "", { placeholder: "ref.*, sales.countries" });
    const boxes = STARTERS.map((rule) => checkbox(rule.id, !rule.conditions.tables));
    tables.addEventListener("input", () => {
      boxes[0].checked = tables.value.trim() !== "";
    });
    const comment = commentInput("Starter rules");
    return [
      now,
      stepForm(
        "Publish",
        [
          h(
            "fieldset",
            h("legend", "Rules to start with"),
            STARTERS.map((rule, index) =>
              h(
                "label.check",
                boxes[index],
                h("span", h("strong", rule.name), beside(` ${rule.description}`)),
              ),
            ),
          ),
          field("Reference tables", tables, "Names or patterns, separated by commas."),
          comment.field,
        ],
        async () => {
          const chosen = new Set(
            STARTERS.filter((_, index) => boxes[index].checked).map((rule) => rule.id),
          );
          const wanted = names(tables.value);
          if (chosen.has(STARTERS[0].id) && !wanted.length)
            throw new Error("Name the reference tables.");
          const rules = withStarters(stored.rules, chosen, wanted);
          if (rules.length === stored.rules.length)
            throw new Error("Choose a rule that is not there yet.");
          await call("PUT /config/tenants/{tenant}/rules", {
            tenant,
            body: { rules, seq: stored.seq, cacheBust: stored.cacheBust },
            comment: comment.value(),
          });
          notify("Published.");
          await changed();
        },
      ),
    ];
  },

  async "first-hit"(tenant) {
    return h(
      "p",
      "Send the same statement twice. The Gateway knows a new rule after some seconds; the second request is a hit. ",
      a(to(tenant, "traffic"), "What the requests did"),
    );
  },

  async people(tenant, changed) {
    if (!can(tenant, "owner")) return h("p.muted", "Owners invite people.");
    const { fields, send } = invitation(tenant);
    return [
      stepForm("Invite", fields, async () => {
        await send();
        await changed();
      }),
      h(
        "p.muted",
        "The step is done when the first person accepts. ",
        a(to(tenant, "members"), "Members"),
      ),
    ];
  },
};
