// The digest of a day or a week: what happened, each number with its SQL.

import { call, hasStatus } from "../api.js";
import { dayPicker, emptyDay, readActivity } from "../days.js";
import * as f from "../format.js";
import { can } from "../people.js";
import { a, fine, h, pageHead, panel, revisionLink, ruleLink, tabs, to } from "../ui.js";
import { closing, verdict } from "../verdict.js";

/** @type {Show} */
export async function show(context) {
  const { tenant, query } = context;
  const isWeek = query.get("kind") === "week";
  const { days, lastDay } = await readActivity(tenant);
  const day =
    query.get("day") ?? days.filter((one) => one.day < f.today()).at(-1)?.day ?? f.yesterday();
  const monday = f.addDays(day, -weekday(day));
  const [from, until] = isWeek ? [monday, f.addDays(monday, 6)] : [day, day];
  /** @type {Texts} */
  const kind = isWeek ? { kind: "week" } : {};
  const at = (/** @type {string} */ value) => to(tenant, "digest", { ...kind, day: value });
  const head = pageHead(
    "Digest",
    isWeek ? `Week from ${f.periodName(from)} to ${f.periodName(until)}` : f.periodName(day),
    dayPicker(tenant, "digest", day, lastDay, kind, isWeek ? 7 : 1),
  );
  const views = tabs([
    [to(tenant, "digest", { day }), "Day", !isWeek],
    [to(tenant, "digest", { day, kind: "week" }), "Week", isWeek],
  ]);
  const none = (/** @type {string} */ title, /** @type {string} */ note) =>
    h(
      "div",
      head,
      views,
      emptyDay(tenant, title, lastDay && lastDay < from ? lastDay : null, at, note),
    );
  const name = isWeek ? "this week" : f.periodName(day);
  const newest = query.get("newest") ?? (query.has("day") ? null : day);
  const earlier = newest && days.filter((one) => one.day < from).at(-1)?.day;
  if (!(await readActivity(tenant, from, until)).days.length)
    return none(
      `There are no requests ${isWeek ? "in" : "on"} ${name}.`,
      "A digest says what happened in a day or a week with requests.",
    );
  const ready = `${f.addDays(until, 1)}T01:00Z`;
  // Without a day in the address, the newest digest that is there.
  const before = () =>
    earlier && show({ ...context, query: new URLSearchParams({ ...kind, day: earlier, newest }) });
  const isEarly = Date.now() < Date.parse(ready);
  const notYet = () =>
    before() ||
    none(
      `The digest of ${name} is ${isEarly ? "not made yet" : "being made"}.`,
      isEarly
        ? `It is made when the log is complete: ${f.ago(ready)}, at ${f.when(ready)}.`
        : "Reload in a minute.",
    );
  if (until >= f.today()) return notYet();
  try {
    const digest = await load(tenant, day, isWeek);
    return h(
      "div",
      head,
      views,
      newest && newest > until && fine("Not yet: ", a(at(newest), f.periodName(newest))),
      verdict(tenant, true),
      digest.sections.map(
        (section) =>
          section.id !== "recommendations" &&
          panel(
            section.heading,
            null,
            h(
              "div.pad.prose",
              section.text.split(/\n+/).map((line) => h("p", sentence(tenant, digest, line))),
              closing(tenant, section) &&
                h("p.strong", "Closed by ", closing(tenant, section), "."),
            ),
          ),
      ),
      fine(
        "Each number is a link to the SQL that gives it. ",
        digest.sections.some((section) => /usual/.test(section.text)) &&
          `“Usual” is the median of ${isWeek ? "the weeks before" : "the same day of the week in the weeks before"}. `,
        digest.sections.some((section) => /Coincides/.test(section.text)) &&
          "“Coincides with” names what happened shortly before; it need not be the cause. ",
        a("#/account", "Get digests by mail"),
        ".",
      ),
    );
  } catch (error) {
    if (!hasStatus(error, 404)) throw error;
    return notYet();
  }
}

/** @param {string} day 0 is Monday */
const weekday = (day) => (new Date(`${day}T00:00Z`).getUTCDay() + 6) % 7;

/** @param {string} tenant @param {string} day @param {boolean} isWeek */
function load(tenant, day, isWeek) {
  const [year, month, date] = day.split("-");
  if (!isWeek)
    return call("GET /tenants/{tenant}/digests/{year}/{month}/{day}", {
      tenant,
      year,
      month,
      day: date,
    });
  return call("GET /tenants/{tenant}/digests/{year}/weeks/{week}", { tenant, ...isoWeek(day) });
}

/** @param {string} day the ISO week of a day: it belongs to the year of its Thursday */
function isoWeek(day) {
  const thursday = f.addDays(day, 3 - weekday(day));
  const year = thursday.slice(0, 4);
  const days = (Date.parse(thursday) - Date.parse(`${year}-01-01`)) / 86_400_000;
  return { year, week: String(Math.floor(days / 7) + 1).padStart(2, "0") };
}

/**
 * @param {string} tenant
 * @param {Contract.Digest} digest
 * @param {string} line a line with its numbers and names in place of {ids}
 */
function sentence(tenant, digest, line) {
  const facts = new Map(digest.facts.map((fact) => [fact.id, fact]));
  const names = new Map(digest.names.map((name) => [name.id, name]));
  return line.split(/\{([\w.-]+)\}/).map((part, index) => {
    const fact = index % 2 ? facts.get(part) : undefined;
    if (fact)
      return can(tenant, "member")
        ? h("a", { href: to(tenant, "sql", { sql: fact.sql }), title: fact.sql }, fact.text)
        : h("span", { title: fact.sql }, fact.text);
    const name = index % 2 ? names.get(part) : undefined;
    if (!name) return part;
    const [, seq, at] =
      (name.kind === "revision" && /^revision (\d+) \((.+)\)$/.exec(name.value)) || [];
    if (seq) return [revisionLink(tenant, seq), ` (${f.when(at)})`];
    if (name.kind === "rule") return ruleLink(tenant, name.value, name.label);
    if (name.kind === "statement")
      return a(
        to(tenant, "statements", {
          day: digest.to,
          days: digest.kind === "week" ? 7 : 1,
          statement: name.value.slice(0, 1000),
        }),
        h("code", name.value),
      );
    return name.kind === "time" ? f.when(name.value) : name.value;
  });
}
