// The digest of a day or a week: what happened, each number with its SQL.

import { call, hasStatus } from "../api.js";
import { nothingYet } from "../firsthour.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { a, fine, h, pageHead, panel, ruleLink, tabs, to } from "../ui.js";
import { dayPicker } from "./statements.js";

/** @type {Show} */
export async function show({ tenant, query }) {
  const day = query.get("day") ?? f.yesterday();
  const isWeek = query.get("kind") === "week";
  const head = pageHead("Digest", isWeek ? `Week of ${f.periodName(day)}` : f.periodName(day),
    dayPicker(tenant, "digest", day, isWeek ? { kind: "week" } : {}, isWeek ? 7 : 1));
  const views = tabs([[to(tenant, "digest", { day }), "Day", !isWeek], [to(tenant, "digest", { day, kind: "week" }), "Week", isWeek]]);
  try {
    const digest = await load(tenant, day, isWeek);
    return h("div", head, views, digest.sections.map((section) => panel(section.heading, section.id === "recommendations" && a(to(tenant, "recommendations"), "Recommendations"), h("div.pad.prose",
      section.text.split(/\n+/).map((line) => h("p", sentence(tenant, digest, line)))))),
    fine("Each number is a link to the SQL that gives it. ", digest.sections.some((section) => /Coincides/.test(section.text)) && "“Coincides with” names what happened shortly before; it need not be the cause. ", a("#/account", "Get digests by mail"), "."));
  } catch (error) {
    if (!hasStatus(error, 404)) throw error;
    return h("div", head, views, nothingYet(tenant, "first-request", `There is no digest for ${isWeek ? "this week" : f.periodName(day)}.`,
      "It says what happened, in numbers with their SQL. It is made when the period has ended, and its logs are summarised."));
  }
}

/** @param {string} tenant @param {string} day @param {boolean} isWeek */
function load(tenant, day, isWeek) {
  const [year, month, date] = day.split("-");
  if (!isWeek) return call("GET /tenants/{tenant}/digests/{year}/{month}/{day}", { tenant, year, month, day: date });
  return call("GET /tenants/{tenant}/digests/{year}/weeks/{week}", { tenant, ...isoWeek(day) });
}

/** @param {string} day the ISO week of a day: it belongs to the year of its Thursday */
function isoWeek(day) {
  const weekday = (new Date(`${day}T00:00Z`).getUTCDay() + 6) % 7;
  const thursday = f.addDays(day, 3 - weekday);
  const year = thursday.slice(0, 4);
  const days = (Date.parse(thursday) - Date.parse(`${year}-01-01`)) / 86_400_000;
  return { year, week: String(Math.floor(days / 7) + 1).padStart(2, "0") };
}

/** @type {Record<string, (value: number | null) => string>} */
const UNIT = { count: f.number, percent: (value) => (value === null ? f.NONE : f.percent(value / 100)), s: (value) => f.duration(value === null ? null : value * 1000), ms: f.duration,
  h: (value) => (value === null ? f.NONE : `${value.toLocaleString("en-US")} h`),
  money: (value) => (value === null ? f.NONE : value.toLocaleString("en-US", { minimumFractionDigits: value % 1 ? 2 : 0 })) };

/** @param {string} tenant @param {Contract.Digest} digest @param {string} line a line with its numbers and names in place of {ids} */
function sentence(tenant, digest, line) {
  const facts = new Map(digest.facts.map((fact) => [fact.id, fact]));
  const names = new Map(digest.names.map((name) => [name.id, name]));
  return line.split(/\{([\w.-]+)\}/).map((part, index) => {
    const fact = index % 2 ? facts.get(part) : undefined;
    if (fact) {
      const text = (UNIT[fact.unit] ?? f.number)(fact.value);
      return can(tenant, "member") ? h("a", { href: to(tenant, "sql", { sql: fact.sql }), title: fact.sql }, text) : h("span", { title: fact.sql }, text);
    }
    const name = index % 2 ? names.get(part) : undefined;
    if (!name) return part;
    if (name.kind === "rule") return ruleLink(tenant, name.value);
    if (name.kind === "recommendation") return h("a", { href: to(tenant, "recommendations") }, name.value);
    return name.kind === "statement" ? h("code", name.value) : name.kind === "time" ? f.when(name.value) : name.value;
  });
}
