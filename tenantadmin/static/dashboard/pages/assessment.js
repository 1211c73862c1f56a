// The report of an assessment: what a cache would have saved of a warehouse's own history.

import { call, configOf } from "../api.js";
import { DOCS } from "../config.js";
import * as f from "../format.js";
import { can, forgetPerson } from "../people.js";
import {
  a,
  ask,
  beside,
  button,
  empty,
  facts,
  field,
  fine,
  go,
  h,
  input,
  notify,
  num,
  pageHead,
  panel,
  select,
  table,
  tablePanel,
  text,
  tiles,
  to,
} from "../ui.js";
import { WAREHOUSES } from "./assessments.js";
import { figureTiles } from "./replay.js";

/** @typedef {Contract.AssessmentReport} Report */

/** @type {Show} */
export async function show({ tenant }) {
  const { kind } = await configOf(tenant);
  if (!kind)
    return h(
      "div",
      pageHead("Assessment"),
      empty(
        "This tenant is no assessment: its log is of a Gateway.",
        a("#/assessments", "To the assessments"),
      ),
    );
  const found = await call("GET /tenants/{tenant}/assessment", { tenant });
  const { name, source, createdAt, report } = found;
  return h(
    "div",
    pageHead(
      name,
      [
        `${WAREHOUSES[source]}’s own history`,
        report && `, ${report.window.from} to ${report.window.to} (UTC)`,
        `, made ${f.when(createdAt)}`,
      ],
      report && button("Print", () => print()),
      can(tenant, "owner") && button("Make it a customer’s tenant", () => adopt(found), "primary"),
    ),
    report
      ? parts(tenant, report)
      : empty(
          "There is no report yet.",
          h("p.muted", "The command that reads the history has not ended. Run it again to go on."),
        ),
  );
}

/** @param {string} tenant @param {Report} report */
function parts(tenant, report) {
  const { read, repeats, replay, bill, rules, notes } = report;
  return [
    tiles([
      [
        "Saved in a month",
        cost(bill.savedPerMonth) ?? time(bill.savedPerMonth),
        cost(bill.savedPerMonth) && time(bill.savedPerMonth),
      ],
      ["Rules that save", f.number(rules.length)],
      ["Repeat within an hour", f.percent(repeats.hour)],
      ["Repeat within a day", f.percent(repeats.day), "the same text and literals"],
    ]),
    panel("What was read", null, whatWasRead(read)),
    panel(
      "Rules, replayed together",
      beside(`${replay.window.text}, as if they had been in force`),
      rules.length
        ? [h("div.pad", figureTiles(replay.figures)), byRule(replay)]
        : h("p.pad.muted", "No rule would save enough."),
      h(
        "p.pad",
        a(to(tenant, "recommendations"), "Each rule with its reasons, and statements to check it"),
      ),
    ),
    billed(bill),
    bill.metering && metering(bill.metering),
    notes.length > 0 &&
      panel(
        "What is missing, and what got no rule",
        null,
        h(
          "div.pad.prose",
          h(
            "ul",
            notes.map((note) => h("li", note)),
          ),
        ),
      ),
    h(
      "p.muted",
      "A real Gateway may read statements in another way: rules on tables, users and types are surer than rules on texts. ",
      a(`${DOCS}/guides/assess`, "How exact it is"),
    ),
  ];
}

/** @param {Contract.ReadStatements} read */
const whatWasRead = (read) =>
  facts(
    [
      ["Statements in the files", f.number(read.rows)],
      ["In the log", [f.number(read.imported), fine("One that several files have counts once.")]],
      [
        "From the warehouse’s own cache",
        [f.number(read.resultCache), fine("A cache would answer them too, and save nothing.")],
      ],
      ["Failed", [f.number(read.failed), fine("They take no time.")]],
      ["Cut by the source", [f.number(read.truncated), fine("Only their time counts.")]],
      ["Not understood", [f.number(read.unparsed), fine("They keep their text, without tables.")]],
    ],
    ".pad",
  );

/** @param {Contract.Replay} replay without changes: no rule was in force */
const byRule = ({ byRule: rows = [] }) =>
  table(
    [
      { head: "Rule", class: "value", cell: (row) => row.name ?? "no rule" },
      ...rows[0].counts.map((one, index) => ({
        head: one.name,
        number: true,
        cell: (/** @type {Contract.ReplayRow} */ { counts }) => counts[index].text,
      })),
    ],
    rows,
    { label: "Rules, replayed together" },
  );

/** @param {Contract.AssessedBill} bill */
function billed(bill) {
  const rows = /** @type {[string, Contract.Billed][]} */ ([
    ["Without rules", bill.without],
    ["With these rules", bill.withRules],
    ["Saved", bill.saved],
    ["Saved in a month of 30 days", bill.savedPerMonth],
  ]).map(([what, one]) => ({ what, time: time(one), cost: cost(one) }));
  return panel(
    "The bill",
    beside(`${f.count(bill.days, "day")}, by the model`),
    table(
      [
        { head: "Of what", hidden: true, cell: (row) => row.what },
        { head: "Billed time", number: true, cell: (row) => row.time },
        rows[0].cost !== undefined && { head: "Money", number: true, cell: (row) => row.cost },
      ],
      rows,
      { label: "The bill" },
    ),
    h(
      "p.pad.muted.small",
      rows[0].cost === undefined && "Run the command again with --price to see money. ",
      "Billed is all the time that a warehouse is awake: from its first statement until it suspends. So a hit can save more billed time than its statement runs. ",
      a(`${DOCS}/guides/savings`, "How it is counted"),
    ),
  );
}

/** @param {Contract.MeteredDay[]} rows */
const metering = (rows) =>
  tablePanel(
    "The model beside what was billed",
    null,
    [
      text("Warehouse", "host"),
      text("Day", "day"),
      num("By the model", "modelMs", f.duration),
      num("Billed", "meteredMs", f.duration),
      num("Credits or DBU", "metered", (units) => units ?? f.NONE),
      num("Billed by model", "ratio", (ratio) => (ratio === null ? f.NONE : ratio.toFixed(2))),
      text("What may explain it", "inWords", (words) => words || f.NONE),
    ],
    rows,
  );

/** @param {Contract.Billed} billed */
const time = ({ billedMs }) => f.range(billedMs, f.duration);

/** @param {Contract.Billed} billed @returns {string | undefined} */
const cost = ({ money }) =>
  money
    ? [...new Set([money.low, money.high])]
        .map((amount) => f.money(amount, money.currency))
        .join(" to ")
    : undefined;

/** @param {Contract.Assessment} assessment turn it into a customer's tenant */
async function adopt({ tenantId: tenant, name }) {
  const accounts = await ownAccounts();
  const account = select("accountId", accounts, accounts[0]?.[0] ?? "");
  const title = input("tenantName", name, { maxlength: 100, required: true });
  let made = "";
  await ask({
    title: "Make it a customer’s tenant?",
    action: "Make the tenant",
    body: h(
      "div.stack",
      h(
        "p",
        "The new tenant gets the configuration with its prices, and the published rules. Rules that were found become a draft.",
      ),
      h("p.strong", "This report and the history are removed. Print the report to keep it."),
      field("Name", title),
      accounts.length > 1 && field("Account", account),
    ),
    run: async () => {
      const config = await call("POST /config/tenants/{tenant}/adopt", {
        tenant,
        body: { tenantName: title.value.trim(), accountId: account.value || undefined },
      });
      made = config.tenantId;
    },
    then: () => {
      forgetPerson();
      notify("The tenant is there.");
      go(to(made, "setup"));
    },
  });
}

/** @returns {Promise<[string, string][]>} the accounts of the user, with their names */
async function ownAccounts() {
  const { _links } = await call("GET /config/accounts", {});
  const found = await Promise.all(
    _links.items
      .slice(0, 20)
      .map(({ name: account }) => call("GET /config/accounts/{account}", { account })),
  );
  return found.map(({ accountId, name }) => [accountId, name]);
}
