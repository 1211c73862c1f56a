// The frame around pages: navigation by tenant, loading and failing.

import { ApiError, SignedOut, call, hasStatus, mustAcceptTerms, signOut } from "./api.js";
import { DOCS } from "./config.js";
import { fill, h, icon, refill, released } from "./dom.js";
import { knownSetup, progress, readSetup } from "./firsthour.js";
import { chooseUtc, zone } from "./format.js";
import { can, forgetPerson, listed, mayOpen, person, tenants } from "./people.js";
import { NotLoaded, go, to } from "./router.js";
import { keepTenant, keptTenant, session } from "./session.js";
import { a, button, empty, failure, fine, forgetNotices, notify, select, sentence, skeleton } from "./ui.js";

/** @type {[string, [string, string, Right?][]][]} */
const SECTIONS = [
  ["Traffic", [["overview", "Overview"], ["savings", "Savings"], ["statements", "Statements"], ["traffic", "Requests", "member"],
    ["reports", "Stale risk and leaks"], ["digest", "Digest"], ["alerts", "Alerts"]]],
  ["Rules", [["rules", "Rules"], ["drafts", "Drafts and replay"],
    ["recommendations", "Recommendations"], ["invalidate", "Invalidate", "cache"], ["history", "History"]]],
  ["Explore", [["sql", "SQL", "member"], ["explain", "Explain"]]],
  ["Tenant", [["config", "Configuration"], ["members", "Members", "people"]]],
];

/** @type {Texts} what pages call their period in the address: the menu keeps it */
const PERIODS = { overview: "period", savings: "period", statements: "day" };

/** @type {[string, string, string, Right?][]} what one does on a page, with other words for it */
const DEEDS = [
  ["Invite someone", "members?new=1", "add a colleague, member", "owner"], ["New alert", "alerts?new=1", "mail, webhook, Slack", "write"],
  ["Make results stale", "invalidate", "invalidate, purge or clear the cache, marker", "cache"], ["Change the rules", "rules/edit", "edit, TTL", "write"],
  ["Connect a program", "setup?step=first-request", "address, host, JDBC, dbt, Python"],
];

const app = /** @type {HTMLElement} */ (document.getElementById("app"));
const view = h("main", { id: "view", tabindex: -1 });
const side = h("aside.side");
const OPEN = ["/signin", "/terms"];

/** @type {Route | null} */
let before = null;

export const shell = {
  /** @param {string} href where an act leads that was done after its page was left */
  late: (href) => notify("What you began is done.", "", a(href, "See it")),
  /** @param {Route | null} route @param {Context} context @param {() => Promise<Child>} load */
  async open(route, context, load) {
    const { tenant, signal } = context;
    if (!session() && route?.pattern !== "/signin") return askToSignIn();
    const isPlain = OPEN.includes(route?.pattern ?? "");
    if (session() && mustAcceptTerms() && !isPlain) return go(withTarget("/terms"));
    app.className = isPlain ? "plain" : "";
    if (isPlain) {
      forgetNotices();
      fill(app, view);
    }
    else if (!side.isConnected) fill(app, side, view);
    document.body.classList.remove("menu-open");
    fill(view, !isPlain && skeleton());
    if (before) {
      forgetNotices(":is(.error, .revision)");
      scrollTo(0, 0);
      view.focus({ preventScroll: true });
    }
    before = route;
    // The file of the page comes meanwhile; a fault shows when it is needed.
    route?.load().catch(() => {});
    try {
      const isStrange = !isPlain && tenant && !(await mayOpen(tenant));
      if (tenant && !isStrange) keepTenant(tenant);
      if (!isPlain) await drawSide(context, route);
      const node = isStrange ? await strange() : route ? await refused(tenant, route) ?? await load() : empty("There is no such page.", a("#/", "To the tenants"));
      if (signal.aborted) return;
      fill(view, node);
      if (isPlain || isStrange) return;
      // The names of tenants and what is left to set up: no page waits.
      const [names, setup] = [listed().length, tenant && knownSetup(tenant)];
      await Promise.allSettled([names || tenants(), tenant && readSetup(tenant, signal)]);
      if (!names || (tenant && setup !== knownSetup(tenant))) await drawSide(context, route);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof SignedOut) return askToSignIn();
      if (error instanceof ApiError && error.code === "tos_required") return;
      const isGone = tenant && hasStatus(error, 403, 404) && !(await tenants()).some((one) => one.id === tenant);
      const node = isGone ? await strange() : failure(error, error instanceof NotLoaded ? () => location.reload() : context.reload);
      if (!signal.aborted) fill(view, node);
    }
  },
};

/** @param {string} tenant @param {Route} route null if the role has this page, else a notice */
async function refused(tenant, route) {
  const right = SECTIONS.flatMap(([, entries]) => entries).find(([key]) => route.pattern.endsWith(`tenant/${key}`))?.[2];
  if (!right || can(tenant, right)) return null;
  // Grants come with the list.
  await tenants();
  if (can(tenant, right)) return null;
  const { events } = await call("GET /config/events", { tenant, kind: "invitation.created", limit: 1 });
  const { role, roles } = await person();
  return empty(`Your role in this tenant does not include the page ${route.title}.`, h("p.muted", `You are ${role === "guest" ? "guest" : roles.get(tenant) ?? "no member"} here. `,
    events.length ? `Ask ${events[0].actor}, who invited you, or another owner of the tenant.` : "Ask an owner of the tenant for another role."));
}

/** What stands in place of a tenant that the user may not open. */
const strange = async () => empty("You have no tenant at this address.", h("p.muted", "It is deleted, or you are not in it. You are ", h("strong", (await person()).email), ": ask the person who sent you the link to invite this address."), a("#/", "To your tenants"));

function askToSignIn() {
  forgetPerson();
  go(withTarget("/signin"));
}

/** @param {string} path the address of a page that leads back to the present one */
function withTarget(path) {
  const wanted = /^#\/(signin|terms)?(\?|$)/.test(location.hash) ? "" : location.hash.slice(1);
  return wanted ? `${path}?to=${encodeURIComponent(wanted)}` : path;
}

/** @param {Context} context @param {Route | null} route */
async function drawSide(context, route) {
  const who = await person();
  // Pages without a tenant keep the menu of the one that the user came from.
  const wanted = context.tenant || (route?.pattern === "/" ? "" : keptTenant());
  const tenant = wanted && await mayOpen(wanted) ? wanted : "";
  await released(side);
  if (context.signal.aborted) return;
  const page = (route?.pattern.split("/")[3] ?? "").replace("replays", "drafts");
  const nav = () => side.querySelector("nav");
  const top = nav()?.scrollTop ?? 0;
  palette = async () => (await import("./palette.js")).openPalette(offers(tenant));
  // Names come late.
  refill(side,
    h("div.brand", a("#/", h("span.mark", { "aria-hidden": "true" }), "Gateway",
      tenant && h("span.of", listed().find(({ id }) => id === tenant)?.name)),
      h("button.menu", { type: "button", "aria-label": "Menu", onclick: () => document.body.classList.toggle("menu-open") }, "☰")),
    h("div.side-body",
      tenant && tenantMenu(tenant, page),
      h("button.button.find", { type: "button", onclick: () => palette() }, "Go to…", h("kbd", "Ctrl K")),
      h("nav", { "aria-label": "Pages" },
        tenant ? [firstSteps(tenant, page), ...SECTIONS.flatMap(([name, entries]) => section(name, entries, tenant, page, context.query))]
          : h("ul", link("#/", "tenants", "Tenants", route?.pattern === "/"))),
      h("div.who",
        h("ul", link("#/account", "account", who.name, route?.pattern === "/account"), link(DOCS, "docs", "API and guides")),
        button(`Times in ${zone()}`, changeZone, "quiet"),
        button("Sign out", leave, "quiet"))));
  nav()?.scrollTo(0, top);
  nav()?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
}

/** Open the palette of the present menu. */
let palette = async () => {};

document.addEventListener("keydown", (event) => {
  const isTyping = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
  const isAsked = event.ctrlKey || event.metaKey ? event.key.toLowerCase() === "k" : event.key === "?" && !isTyping;
  if (!isAsked || !side.isConnected) return;
  event.preventDefault();
  palette();
});

/** @param {string} tenant @returns {Offer[]} where the palette leads */
function offers(tenant) {
  /** @type {[string, string, string, Right?][]} */
  const pages = [...SECTIONS.flatMap(([of, entries]) => entries.map(([key, name, right]) => /** @type {[string, string, string, Right?]} */ ([name, key, of, right]))), ...DEEDS];
  return [...pages.filter(([, , , right]) => tenant && (!right || can(tenant, right))).map(([name, path, words]) => /** @type {Offer} */ ([name, to(tenant, path), words])),
    ["New token", "#/account?new=1", "personal access token, API key"], ["Your account", "#/account", "name, digests by mail, sessions"], ["API and guides", DOCS, "docs, help"],
    ...listed().map(({ id, name }) => /** @type {Offer} */ ([name, to(id, "overview"), "tenant"])), ["All tenants", "#/?all=1", ""]];
}

/** @param {string} tenant @param {string} page the page of the first steps, until all are done */
function firstSteps(tenant, page) {
  const setup = knownSetup(tenant);
  if (!setup || setup.ready) return null;
  return h("ul", { id: "first-steps" }, link(to(tenant, "setup"), "setup", progress(setup), page === "setup"));
}

/** @param {string} name @param {[string, string, Right?][]} entries @param {string} tenant @param {string} page @param {URLSearchParams} query */
function section(name, entries, tenant, page, query) {
  const offered = entries.filter(([, , right]) => !right || can(tenant, right));
  // The page itself leads back to its usual period.
  const kept = (/** @type {string} */ key) => {
    const period = key !== page && PERIODS[key] && query.get(PERIODS[page]);
    // Statements are of days.
    return period && (key !== "statements" || period[7]) ? { [PERIODS[key]]: period, days: query.get("days") } : {};
  };
  return [h("h2", name), h("ul", offered.map(([key, text]) => link(to(tenant, key, kept(key)), key, text, key === page)))];
}

/** @param {string} href @param {string} sign @param {string} text @param {boolean} [isNow] */
const link = (href, sign, text, isNow) =>
  h("li", h("a", { href, "aria-current": isNow && "page" }, icon(sign), h("span", text)));

/** @param {string} tenant @param {string} page */
function tenantMenu(tenant, page) {
  const menu = select("tenant", choices(tenant), tenant, { "aria-label": "Tenant" });
  menu.addEventListener("change", () => {
    if (!menu.value) return go("/?all=1");
    location.hash = to(menu.value, page || "overview");
  });
  return h("div.tenant", menu, !can(tenant, "write") && fine("You read here. Owners change roles."));
}

/** @param {string} tenant @returns {[string, string][]} values and names of the menu of tenants */
function choices(tenant) {
  const names = new Map(listed().map(({ id, name }) => [id, name]));
  if (!names.has(tenant)) names.set(tenant, tenant.slice(0, 8));
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
