// The menu: the pages of a tenant by section, the choice of the tenant, and the palette.

import { signOut } from "./api.js";
import { DOCS, PRODUCT } from "./config.js";
import { given, h, icon, onPaletteKey, refill, released } from "./dom.js";
import { knownSetup, progress } from "./firsthour.js";
import { chooseUtc, zone } from "./format.js";
import { can, forgetPerson, isAssessment, listed, mayOpen, person } from "./people.js";
import { go, to } from "./router.js";
import { keptTenant } from "./session.js";
import { staff } from "./staff.js";
import { a, button, fine, notify, select, sentence } from "./ui.js";

/**
 * @typedef {{title: string, path: string, words: string, right: Right | "", section: string}} Page
 * @type {Page[]} from the page of the service (accounts/dashboard.py). Acts have no section.
 */
export const PAGES = given("pages") ?? [];

/** @type {Texts} what pages call their period in the address: the menu keeps it */
const PERIODS = { overview: "period", savings: "period", statements: "day" };

export const side = h("aside.side");

/** What the menu that is shown does. */
const menu = { openPalette: async () => {} };

/** @param {Route} route @returns {Right | undefined} what its page asks of the user's role */
export const rightFor = (route) =>
  PAGES.find(({ path, section }) => section && route.pattern.endsWith(`tenant/${path}`))?.right ||
  undefined;

/**
 * Draw the menu anew: of the tenant of the page, or of the one that the user came from.
 * @param {Context} context
 * @param {Route | null} route
 */
export async function drawSide(context, route) {
  const who = await person();
  const wanted =
    context.tenant || (["/", "/assessments"].includes(route?.pattern ?? "") ? "" : keptTenant());
  const tenant = wanted && (await mayOpen(wanted)) ? wanted : "";
  await released(side);
  if (context.signal.aborted) return;
  const page = (route?.pattern.split("/")[3] ?? "").replace("replays", "drafts");
  const nav = () => side.querySelector("nav");
  const top = nav()?.scrollTop ?? 0;
  menu.openPalette = async () =>
    (await import("./palette.js")).openPalette(finding(offers(tenant)), {
      placeholder: "A page, a tenant, or what you want to do",
      keys: [", ", h("kbd", "Ctrl Enter"), " runs SQL"],
    });
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
        "button.find",
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
              ...[...new Set(PAGES.map((one) => one.section).filter(Boolean))].flatMap((name) =>
                section(name, tenant, page, context.query),
              ),
            ]
          : h(
              "ul",
              link("#/", "tenants", "Tenants", route?.pattern === "/"),
              link(
                "#/assessments",
                "assessment",
                "Your own history",
                route?.pattern === "/assessments",
              ),
            ),
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

onPaletteKey(() => side.isConnected && menu.openPalette());

/** @param {string} tenant @param {string} [name] of a section @returns {Page[]} what the role has */
const offered = (tenant, name) =>
  PAGES.filter(
    ({ right, section }) =>
      tenant && (name ?? section) === section && (!right || can(tenant, right)),
  );

/** @param {string} tenant @returns {Offer[]} where the palette leads */
const offers = (tenant) => [
  ...offered(tenant).map(
    ({ title, path, words, section }) =>
      /** @type {Offer} */ ([title, to(tenant, path), words || section]),
  ),
  ["New token", "#/account?new=1", "personal access token, API key"],
  ["Your account", "#/account", "name, digests by mail, sessions"],
  ["API and guides", DOCS, "docs, help"],
  ...listed().map(({ id, name }) => /** @type {Offer} */ ([name, to(id, "overview"), "tenant"])),
  ["All tenants", "#/?all=1", ""],
  ["Try it on your own history", "#/assessments", "assessment, Snowflake, Databricks, PostgreSQL"],
];

/** @type {(entries: Offer[]) => (term: string) => Offer[]} the first that have each word */
const finding = (entries) => (term) => {
  const words = term.toLowerCase().split(/\s+/);
  return entries
    .filter(([name, , more]) =>
      words.every((word) => `${name} ${more}`.toLowerCase().includes(word)),
    )
    .slice(0, 12);
};

/**
 * @param {string} tenant
 * @param {string} page the report of an assessment, or the first steps until all are done
 */
function firstSteps(tenant, page) {
  if (isAssessment(tenant))
    return h(
      "ul",
      link(to(tenant, "assessment"), "assessment", "Assessment", page === "assessment"),
    );
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
 * @param {string} tenant
 * @param {string} page
 * @param {URLSearchParams} query
 */
function section(name, tenant, page, query) {
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
      offered(tenant, name).map(({ path, title }) =>
        link(to(tenant, path, kept(path)), path, title, path === page),
      ),
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
