// Links to what many pages name.

import { h } from "../dom.js";
import { to } from "../router.js";
import { a } from "./basics.js";

/**
 * @type {(tenant: string, id: string | null | undefined, text?: Child) => Child} a link to a rule
 */
export const ruleLink = (tenant, id, text = id) =>
  id
    ? h("a", { href: to(tenant, "rules", { rule: id }), title: id }, text)
    : h("span.muted", "no rule");

/**
 * @type {(tenant: string, seq: number | string, text?: Child, kind?: string) => HTMLElement} a link
 *   to a revision
 */
export const revisionLink = (tenant, seq, text = `revision ${seq}`, kind = "rules") =>
  a(to(tenant, "history", { kind, seq }), text);
