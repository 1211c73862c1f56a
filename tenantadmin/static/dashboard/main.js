// The dashboard. It calls operations of the contract, and nothing else.

import { call } from "./api.js";
import { PAGES } from "./menu.js";
import { startRouter } from "./router.js";
import { takeInterrupted, takeTokens } from "./session.js";
import { shell } from "./shell.js";
import { notify, sentence } from "./ui.js";

const offered = takeTokens();
if (offered) await (await import("./pages/continue.js")).ask(offered);

// What the user began before it proved its second factor.
const waiting = takeInterrupted();
if (waiting) {
  await call(waiting.operation, waiting.input, waiting.options).then(
    () => notify("Done: what you began before."),
    (error) => notify(sentence(error), "error"),
  );
}

/**
 * @type {(pattern: string, title: string, file?: string) => Route} `file`: of the page, if it is
 *   not the name in the address
 */
const page = (pattern, title, file = pattern.slice(1)) => ({
  pattern,
  title,
  load: () => import(`./pages/${file}.js`),
});

/** @type {(path: string, title: string, file?: string) => Route} */
const ofTenant = (path, title, file = path) => page(`/t/:tenant/${path}`, title, file);

startRouter(
  [
    page("/", "Tenants", "tenants"),
    page("/signin", "Sign in"),
    page("/terms", "Terms of service"),
    page("/open", "Open"),
    page("/invitations", "Invitations"),
    page("/account", "Your account"),
    page("/assessments", "Try it on your own history"),
    ...PAGES.filter(({ section }) => section).map(({ path, title }) => ofTenant(path, title)),
    ofTenant("setup", "First steps"),
    ofTenant("assessment", "Assessment"),
    ofTenant("rules/edit", "Edit rules", "rules-edit"),
    ofTenant("drafts/:draft", "Draft", "draft"),
    ofTenant("replays/:replay", "Replay", "replay"),
  ],
  shell,
);
