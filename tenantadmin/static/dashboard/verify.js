// Whether the numbers of a day, a month or a year equal the log.

import { call } from "./api.js";
import * as f from "./format.js";
import { can } from "./people.js";
import { badge, button, code, fill, fine, h, panel, select, table, text } from "./ui.js";

/** @typedef {Contract.Operations["POST /tenants/{tenant}/verifications"]} Verify */

/** @type {[string, string][][]} what is made of a day, a month and a year, with its name */
const DOCUMENTS = [
  [["day", "Summary of the day"]],
  [["month", "Summary of the month"]],
  [
    ["year", "Summary of the year"],
    ["rules", "Rules"],
    ["opportunities", "Opportunities"],
  ],
];

/**
 * @param {string} tenant
 * @param {string} period a day, a month or a year
 */
export function verification(tenant, period) {
  if (!can(tenant, "member")) return null;
  const own = DOCUMENTS[(10 - period.length) / 3];
  const document = select("document", [...own, ["savings", "Savings"]], own[0][0], {
    "aria-label": "What is checked",
  });
  const result = h("div", { role: "status" });
  const check = async () => {
    fill(result, fine("Counting…"));
    try {
      const body = /** @type {Verify["input"]["body"]} */ ({ document: document.value, period });
      fill(result, found(await call("POST /tenants/{tenant}/verifications", { tenant, body })));
    } catch (error) {
      fill(result);
      throw error;
    }
  };
  return panel(
    "Check these numbers",
    [document, button("Check", check)],
    h(
      "div.pad.stack",
      fine("Each number is counted again with SQL over the log, and those that differ are listed."),
      result,
    ),
  );
}

/** @param {Verify["answer"]} answer */
const found = ({ equal, fields, unequal, unequalCount, queries }) => [
  h(
    "p",
    equal
      ? badge(`all ${f.count(fields, "value")} are equal`, "good")
      : badge(`${f.number(unequalCount)} of ${f.count(fields, "value")} differ`, "bad"),
  ),
  unequal.length > 0 &&
    table(
      [
        text("Where", "path", (path) => h("code", path)),
        text("Document", "document", JSON.stringify),
        text("Log", "query", JSON.stringify),
      ],
      unequal,
      { label: "Values that differ" },
    ),
  queries.map(({ name, sql, ms }) =>
    h("details", h("summary", `${name}, ${f.duration(ms)}`), code(sql)),
  ),
];
