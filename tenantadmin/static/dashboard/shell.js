// The frame around pages: navigation by tenant, loading and failing.

import { ApiError, SignedOut, call, hasStatus, mustAcceptTerms, signOut } from "./api.js";
import { fill, h } from "./dom.js";
import { knownSetup, readSetup } from "./firsthour.js";
import { drawSide, rightFor, side } from "./menu.js";
import { when } from "./format.js";
import { can, forgetPerson, listed, mayOpen, person, tenants } from "./people.js";
import { NotLoaded, go, to } from "./router.js";
import { keepTenant, session } from "./session.js";
import { adminPage, openingPage, shownPage, staff } from "./staff.js";
import { a, button, empty, failure, forgetNotices, notify, skeleton } from "./ui.js";

const app = /** @type {HTMLElement} */ (document.getElementById("app"));
const view = h("main", { id: "view", tabindex: -1 });
const OPEN = ["/signin", "/terms", "/open"];
const bar = h("aside.staff", { "aria-label": "Staff" });

/** @type {{route: Route | null}} the page before */
const before = { route: null };

export const shell = {
  /** @param {string} href where an act leads that was done after its page was left */
  late: (href) => notify("What you began is done.", "", a(href, "See it")),
  /** @param {Route | null} route @param {Context} context @param {() => Promise<Child>} load */
  async open(route, context, load) {
    const { tenant, signal } = context;
    if (!session() && !["/signin", "/open"].includes(route?.pattern ?? "")) return askToSignIn();
    const opened = staff();
    if (opened && route?.pattern === "/") return go(to(opened.tenant, "overview"));
    const isPlain = OPEN.includes(route?.pattern ?? "");
    if (session() && mustAcceptTerms() && !isPlain) return go(withTarget("/terms"));
    app.className = isPlain ? "plain" : "";
    // No page waits for it. A fault of signing in shows on the page.
    if (!isPlain) drawBar().catch(() => {});
    if (isPlain) {
      bar.remove();
      forgetNotices();
      fill(app, view);
    } else if (!side.isConnected) fill(app, side, view);
    document.body.classList.remove("menu-open");
    fill(view, !isPlain && skeleton());
    if (before.route) {
      forgetNotices(":is(.error, .revision)");
      scrollTo(0, 0);
      view.focus({ preventScroll: true });
    }
    before.route = route;
    // The file of the page comes meanwhile; a fault shows when it is needed.
    route?.load().catch(() => {});
    try {
      const isStrange = !isPlain && tenant && !(await mayOpen(tenant));
      if (tenant && !isStrange) keepTenant(tenant);
      if (!isPlain) await drawSide(context, route);
      const node = isStrange
        ? await strange()
        : route
          ? ((await refused(tenant, route)) ?? (await load()))
          : empty("There is no such page.", a("#/", "To the tenants"));
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
      const isGone =
        tenant && hasStatus(error, 403, 404) && !(await tenants()).some((one) => one.id === tenant);
      const node = isGone
        ? await strange()
        : failure(error, error instanceof NotLoaded ? () => location.reload() : context.reload);
      if (!signal.aborted) fill(view, node);
    }
  },
};

/** @param {string} tenant @param {Route} route null if the role has this page, else a notice */
async function refused(tenant, route) {
  const right = rightFor(route);
  if (!right || can(tenant, right)) return null;
  // Grants come with the list.
  await tenants();
  if (can(tenant, right)) return null;
  const { events } = await call("GET /config/events", {
    tenant,
    kind: "invitation.created",
    limit: 1,
  });
  const { role, roles } = await person();
  return empty(
    `Your role in this tenant does not include the page ${route.title}.`,
    h(
      "p.muted",
      `You are ${role === "guest" ? "guest" : (roles.get(tenant) ?? "no member")} here. `,
      events.length
        ? `Ask ${events[0].actor}, who invited you, or another owner of the tenant.`
        : "Ask an owner of the tenant for another role.",
    ),
  );
}

/** Say whose tenant staff look at, as whom, why, and whether they may read its log. */
async function drawBar() {
  const opened = staff();
  if (!opened) return bar.remove();
  const { email, roles } = await person();
  if (!bar.isConnected) app.before(bar);
  const { tenant, name, reason, until } = opened;
  fill(
    bar,
    h(
      "p",
      h("strong", `You look at ${name}, a customer’s tenant,`),
      ` as ${email}: ${reason}. `,
      roles.has(tenant)
        ? `You may read its log${until ? ` until ${when(until)}` : ""}.`
        : a(openingPage(tenant, shownPage(), { reason }), "Read its log, too"),
    ),
    button("Leave", leave, "small"),
  );
}

/** End the session of staff, and go back to the admin site. */
async function leave() {
  const page = adminPage(/** @type {Staff} */ (staff()).tenant);
  await signOut().catch(() => {});
  location.assign(page);
}

/** What stands in place of a tenant that the user may not open. */
const strange = async () =>
  empty(
    "You have no tenant at this address.",
    h(
      "p.muted",
      "It is deleted, or you are not in it. You are ",
      h("strong", (await person()).email),
      ": ask the person who sent you the link to invite this address.",
    ),
    a("#/", "To your tenants"),
  );

function askToSignIn() {
  forgetPerson();
  go(withTarget("/signin"));
}

/** @param {string} path the address of a page that leads back to the present one */
function withTarget(path) {
  const wanted = /^#\/(signin|terms)?(\?|$)/.test(location.hash) ? "" : location.hash.slice(1);
  return wanted ? `${path}?to=${encodeURIComponent(wanted)}` : path;
}
