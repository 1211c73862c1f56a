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

/** @type {import("./router.js").Route[]} */
const ROUTES = [
  { pattern: "/", title: "Tenants", load: () => import("./pages/tenants.js") },
  { pattern: "/signin", title: "Sign in", load: () => import("./pages/signin.js") },
  { pattern: "/terms", title: "Terms of service", load: () => import("./pages/terms.js") },
  { pattern: "/t/:tenant/setup", title: "First steps", load: () => import("./pages/setup.js") },
  { pattern: "/t/:tenant/overview", title: "Overview", load: () => import("./pages/overview.js") },
  { pattern: "/t/:tenant/savings", title: "Savings", load: () => import("./pages/savings.js") },
  { pattern: "/t/:tenant/traffic", title: "Requests", load: () => import("./pages/traffic.js") },
  { pattern: "/t/:tenant/rules", title: "Rules", load: () => import("./pages/rules.js") },
  { pattern: "/t/:tenant/rules/edit", title: "Edit rules", load: () => import("./pages/rules-edit.js") },
  { pattern: "/t/:tenant/invalidate", title: "Invalidate", load: () => import("./pages/invalidate.js") },
  { pattern: "/t/:tenant/history", title: "History", load: () => import("./pages/history.js") },
  { pattern: "/t/:tenant/statements", title: "Statements", load: () => import("./pages/statements.js") },
  { pattern: "/t/:tenant/sql", title: "SQL", load: () => import("./pages/sql.js") },
  { pattern: "/t/:tenant/drafts", title: "Drafts and replay", load: () => import("./pages/drafts.js") },
  { pattern: "/t/:tenant/drafts/:draft", title: "Draft", load: () => import("./pages/draft.js") },
  { pattern: "/t/:tenant/replays/:replay", title: "Replay", load: () => import("./pages/replay.js") },
  { pattern: "/t/:tenant/explain", title: "Explain", load: () => import("./pages/explain.js") },
  { pattern: "/t/:tenant/reports", title: "Stale risk and leaks", load: () => import("./pages/reports.js") },
  { pattern: "/t/:tenant/config", title: "Configuration", load: () => import("./pages/config.js") },
  { pattern: "/t/:tenant/members", title: "Members", load: () => import("./pages/members.js") },
  { pattern: "/t/:tenant/recommendations", title: "Recommendations", load: () => import("./pages/recommendations.js") },
  { pattern: "/t/:tenant/digest", title: "Digest", load: () => import("./pages/digest.js") },
  { pattern: "/t/:tenant/alerts", title: "Alerts", load: () => import("./pages/alerts.js") },
  { pattern: "/invitations", title: "Invitations", load: () => import("./pages/invitations.js") },
  { pattern: "/account", title: "Your account", load: () => import("./pages/account.js") },
];

startRouter(ROUTES, shell);
