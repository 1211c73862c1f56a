// Tables that the log names in several ways: a condition of a rule fits only the text that it has.

import { fine, h, tablePanel, text } from "./ui.js";

/**
 * @param {Contract.TableSpellings[]} tables
 * @param {boolean} [isComplete] whether the log has no other
 * @returns {Child} nothing if each table has one name
 */
export const spelled = (tables, isComplete = true) =>
  (tables.length > 0 || !isComplete) &&
  h(
    "section",
    tablePanel(
      "Tables with several spellings in the log",
      null,
      [
        text("Table", "table", (name) => h("code", name)),
        text("In the log as", "spellings", (/** @type {string[]} */ names) =>
          names.map((name, index) => [index > 0 && ", ", h("code", name)]),
        ),
      ],
      tables,
      { none: "The log has more names of tables than are kept: which are the same is not known." },
    ),
    fine(
      "Conditions of rules compare the text: list each spelling in a rule, or a pattern that fits all. ",
      !isComplete && "The log has more of them than are kept.",
    ),
  );
