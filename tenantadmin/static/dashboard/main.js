// The dashboard. It calls the operations of the service's contract, and nothing else.

import { call } from "./api.js";
import { startRouter } from "./router.js";
import { takeInterrupted, takeTokens } from "./session.js";
import { shell } from "./shell.js";
import { notify, sentence } from "./ui.js";

const offered = takeTokens();
if (offered) await (await import("./pages/continue.js")).ask(offered);

// What the user began before it proved its second factor.
const waiting = takeInterrupted();
if (waiting) {
  await call(waiting.operation, waiting.input, waiting.options)
    .then(() => notify("Done: what you began before."), (error) => notify(sentence(error), "error"));
}

/** @type {(path: string, title: string, load: Route["load"]) => Route} */
const ofTenant = (path, title, load) => ({ pattern: `/t/:tenant/${path}`, title, load });

/** @type {Route[]} */
const ROUTES = [
  { pattern: "/", title: "Tenants", load: () => import("./pages/tenants.js") },
  { pattern: "/signin", title: "Sign in", load: () => import("./pages/signin.js") },
  { pattern: "/terms", title: "Terms of service", load: () => import("./pages/terms.js") },
  ofTenant("setup", "First steps", () => import("./pages/setup.js")),
  ofTenant("overview", "Overview", () => import("./pages/overview.js")),
  ofTenant("savings", "Savings", () => import("./pages/savings.js")),
  ofTenant("traffic", "Requests", () => import("./pages/traffic.js")),
  ofTenant("rules", "Rules", () => import("./pages/rules.js")),
  ofTenant("rules/edit", "Edit rules", () => import("./pages/rules-edit.js")),
  ofTenant("invalidate", "Invalidate", () => import("./pages/invalidate.js")),
  ofTenant("history", "History", () => import("./pages/history.js")),
  ofTenant("statements", "Statements", () => import("./pages/statements.js")),
  ofTenant("sql", "SQL", () => import("./pages/sql.js")),
  ofTenant("drafts", "Drafts and replay", () => import("./pages/drafts.js")),
  ofTenant("drafts/:draft", "Draft", () => import("./pages/draft.js")),
  ofTenant("replays/:replay", "Replay", () => import("./pages/replay.js")),
  ofTenant("explain", "Explain", () => import("./pages/explain.js")),
  ofTenant("reports", "Stale risk and leaks", () => import("./pages/reports.js")),
  ofTenant("config", "Configuration", () => import("./pages/config.js")),
  ofTenant("members", "Members", () => import("./pages/members.js")),
  ofTenant("recommendations", "Recommendations", () => import("./pages/recommendations.js")),
  ofTenant("digest", "Digest", () => import("./pages/digest.js")),
  ofTenant("alerts", "Alerts", () => import("./pages/alerts.js")),
  { pattern: "/invitations", title: "Invitations", load: () => import("./pages/invitations.js") },
  { pattern: "/account", title: "Your account", load: () => import("./pages/account.js") },
];

startRouter(ROUTES, shell);
