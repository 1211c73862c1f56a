// The menu: the pages of a tenant by section, the choice of the tenant, and the palette.

import { signOut } from "./api.js";
import { DOCS, PRODUCT } from "./config.js";
import { h, icon, refill, released } from "./dom.js";
import { knownSetup, progress } from "./firsthour.js";
import { chooseUtc, zone } from "./format.js";
import { can, forgetPerson, listed, mayOpen, person } from "./people.js";
import { go, to } from "./router.js";
import { keptTenant } from "./session.js";
import { staff } from "./staff.js";
import { a, button, fine, notify, select, sentence } from "./ui.js";

/** @type {[string, [string, string, Right?][]][]} */
const SECTIONS = [
  [
    "Traffic",
    [
      ["overview", "Overview"],
      ["savings", "Savings"],
      ["statements", "Statements"],
      ["traffic", "Requests", "member"],
      ["reports", "Stale risk and leaks"],
      ["digest", "Digest"],
      ["alerts", "Alerts"],
    ],
  ],
  [
    "Rules",
    [
      ["rules", "Rules"],
      ["drafts", "Drafts and replay"],
      ["recommendations", "Recommendations"],
      ["invalidate", "Invalidate", "cache"],
      ["history", "History"],
    ],
  ],
  [
    "Explore",
    [
      ["sql", "SQL", "member"],
      ["explain", "Explain"],
    ],
  ],
  [
    "Tenant",
    [
      ["config", "Configuration"],
      ["members", "Members", "people"],
    ],
  ],
];

/** @type {Texts} what pages call their period in the address: the menu keeps it */
const PERIODS = { overview: "period", savings: "period", statements: "day" };

/** @type {[string, string, string, Right?][]} what one does on a page, with other words for it */
const DEEDS = [
  ["Invite someone", "members?new=1", "add a colleague, member", "owner"],
  ["New alert", "alerts?new=1", "mail, webhook, Slack", "write"],
  ["Make results stale", "invalidate", "invalidate, purge or clear the cache, marker", "cache"],
  ["Change the rules", "rules/edit", "edit, TTL", "write"],
  ["Connect a program", "setup?step=first-request", "address, host, JDBC, dbt, Python"],
];

export const side = h("aside.side");

/** What the menu that is shown does. */
const menu = { openPalette: async () => {} };

/** @param {Route} route @returns {Right | undefined} what its page asks of the user's role */
export const rightFor = (route) =>
  SECTIONS.flatMap(([, entries]) => entries).find(([key]) =>
    route.pattern.endsWith(`tenant/${key}`),
  )?.[2];

/**
 * Draw the menu anew: of the tenant of the page, or of the one that the user came from.
 * @param {Context} context
 * @param {Route | null} route
 */
export async function drawSide(context, route) {
  const who = await person();
  const wanted = context.tenant || (route?.pattern === "/" ? "" : keptTenant());
  const tenant = wanted && (await mayOpen(wanted)) ? wanted : "";
  await released(side);
  if (context.signal.aborted) return;
  const page = (route?.pattern.split("/")[3] ?? "").replace("replays", "drafts");
  const nav = () => side.querySelector("nav");
  const top = nav()?.scrollTop ?? 0;
  menu.openPalette = async () => (await import("./palette.js")).openPalette(offers(tenant));
  // Names come late.
  refill(
    side,
    h(
      "div.brand",
      a(
        "#/",
        h("span.mark", { "aria-hidden": "true" }),
        PRODUCT,
        tenant && h("span.of", listed().find(({ id }) => id === tenant)?.name),
      ),
      h(
        "button.menu",
        {
          type: "button",
          "aria-label": "Menu",
          onclick: () => document.body.classList.toggle("menu-open"),
        },
        "☰",
      ),
    ),
    h(
      "div.side-body",
      tenant && tenantMenu(tenant, page),
      h(
        "button.button.find",
        { type: "button", onclick: () => menu.openPalette() },
        "Go to…",
        h("kbd", "Ctrl K"),
      ),
      h(
        "nav",
        { "aria-label": "Pages" },
        tenant
          ? [
              firstSteps(tenant, page),
              ...SECTIONS.flatMap(([name, entries]) =>
                section(name, entries, tenant, page, context.query),
              ),
            ]
          : h("ul", link("#/", "tenants", "Tenants", route?.pattern === "/")),
      ),
      h(
        "div.who",
        h(
          "ul",
          link("#/account", "account", who.name, route?.pattern === "/account"),
          link(DOCS, "docs", "API and guides"),
        ),
        button(`Times in ${zone()}`, changeZone, "quiet"),
        button("Sign out", leave, "quiet"),
      ),
    ),
  );
  nav()?.scrollTo(0, top);
  nav()?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  const isTyping =
    event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
  const isAsked =
    event.ctrlKey || event.metaKey
      ? event.key.toLowerCase() === "k"
      : event.key === "?" && !isTyping;
  if (!isAsked || !side.isConnected) return;
  event.preventDefault();
  menu.openPalette();
});

/** @param {string} tenant @returns {Offer[]} where the palette leads */
function offers(tenant) {
  /** @type {[string, string, string, Right?][]} */
  const pages = [
    ...SECTIONS.flatMap(([of, entries]) =>
      entries.map(
        ([key, name, right]) =>
          /** @type {[string, string, string, Right?]} */ ([name, key, of, right]),
      ),
    ),
    ...DEEDS,
  ];
  return [
    ...pages
      .filter(([, , , right]) => tenant && (!right || can(tenant, right)))
      .map(([name, path, words]) => /** @type {Offer} */ ([name, to(tenant, path), words])),
    ["New token", "#/account?new=1", "personal access token, API key"],
    ["Your account", "#/account", "name, digests by mail, sessions"],
    ["API and guides", DOCS, "docs, help"],
    ...listed().map(({ id, name }) => /** @type {Offer} */ ([name, to(id, "overview"), "tenant"])),
    ["All tenants", "#/?all=1", ""],
  ];
}

/** @param {string} tenant @param {string} page the page of the first steps, until all are done */
function firstSteps(tenant, page) {
  const setup = knownSetup(tenant);
  if (!setup || setup.ready) return null;
  return h(
    "ul",
    { id: "first-steps" },
    link(to(tenant, "setup"), "setup", progress(setup), page === "setup"),
  );
}

/**
 * @param {string} name
 * @param {[string, string, Right?][]} entries
 * @param {string} tenant
 * @param {string} page
 * @param {URLSearchParams} query
 */
function section(name, entries, tenant, page, query) {
  const offered = entries.filter(([, , right]) => !right || can(tenant, right));
  // The page itself leads back to its usual period.
  const kept = (/** @type {string} */ key) => {
    const period = key !== page && PERIODS[key] && query.get(PERIODS[page]);
    // Statements are of days.
    return period && (key !== "statements" || period[7])
      ? { [PERIODS[key]]: period, days: query.get("days") }
      : {};
  };
  return [
    h("h2", name),
    h(
      "ul",
      offered.map(([key, text]) => link(to(tenant, key, kept(key)), key, text, key === page)),
    ),
  ];
}

/** @param {string} href @param {string} sign @param {string} text @param {boolean} [isNow] */
const link = (href, sign, text, isNow) =>
  h("li", h("a", { href, "aria-current": isNow && "page" }, icon(sign), h("span", text)));

/** @param {string} tenant @param {string} page */
function tenantMenu(tenant, page) {
  const chosen = select("tenant", choices(tenant), tenant, { "aria-label": "Tenant" });
  chosen.addEventListener("change", () => {
    if (!chosen.value) return go("/?all=1");
    location.hash = to(chosen.value, page || "overview");
  });
  return h(
    "div.tenant",
    chosen,
    !can(tenant, "write") && fine("You read here. Owners change roles."),
  );
}

/** @param {string} tenant @returns {[string, string][]} values and names of the menu of tenants */
function choices(tenant) {
  const names = new Map(listed().map(({ id, name }) => [id, name]));
  if (!names.has(tenant)) names.set(tenant, staff()?.name || tenant.slice(0, 8));
  return [...names, ["", "All tenants…"]];
}

/** Show times in UTC, or again in the zone of the browser. */
function changeZone() {
  chooseUtc(zone() !== "UTC");
  location.reload();
}

async function leave() {
  await signOut().catch((error) => notify(sentence(error), "error"));
  forgetPerson();
  go("/signin?out=1");
}
