// SQL over the log for questions that many ask, about the requests that filters choose.

import { readRules } from "./rulenames.js";
import { DEFINITIONS, statusChoices } from "./statuses.js";
import { field, h, input, select } from "./ui.js";

const COUNTED = `count(*) FILTER (${DEFINITIONS.requests}) AS requests`;
const HITS = `count(*) FILTER (${DEFINITIONS.hits}) AS hits`;

/** @type {[string, string, string][]} name, what is selected, and in which order */
const QUESTIONS = [
  [
    "How did the requests end?",
    "cacheStatus, count(*) AS entries",
    "GROUP BY ALL\nORDER BY entries DESC",
  ],
  [
    "Which statements cost most?",
    `standardizedSql, ${COUNTED}, ${DEFINITIONS.warehouseTime} AS ms`,
    "GROUP BY ALL\nORDER BY ms DESC NULLS LAST\nLIMIT 20",
  ],
  [
    "Who asks most?",
    `userName, ${COUNTED}, ${HITS}`,
    "GROUP BY ALL\nORDER BY requests DESC\nLIMIT 20",
  ],
  [
    "When do they ask?",
    `date_trunc('hour', epoch_ms(timestamp)) AS hourUtc, ${COUNTED}, ${HITS}`,
    "GROUP BY ALL\nORDER BY hourUtc",
  ],
  [
    "Why were they misses?",
    `matchedRule, missReason, count(*) FILTER (${DEFINITIONS.storedMisses}) AS misses`,
    "GROUP BY ALL\nHAVING misses > 0\nORDER BY misses DESC",
  ],
  [
    "Which are the newest?",
    "epoch_ms(timestamp) AS atUtc, day, logId, userName, cacheStatus, missReason,\n  matchedRule, warehouseExecutionTimeMs, standardizedSql",
    "ORDER BY timestamp DESC\nLIMIT 200",
  ],
];

/**
 * @param {string} tenant
 * @param {string} day the last with requests
 */
export async function questions(tenant, day) {
  const rules = await readRules(tenant);
  const [from, until] = ["from", "to"].map((name) =>
    input(name, day, { type: "date", required: true }),
  );
  const status = select("status", statusChoices, "");
  const rule = rules.choice("rule");
  const user = input("user", "");
  const table = input("table", "", { placeholder: "sales.orders" });
  const where = () => {
    const equal = /** @type {[string, string][]} */ ([
      ["cacheStatus", status.value],
      ["matchedRule", rule.value],
      ["userName", user.value],
    ]).filter(([, value]) => value);
    return [
      from.value === until.value
        ? `day = '${from.value}'`
        : `day BETWEEN '${from.value}' AND '${until.value}'`,
      ...equal.map(([column, value]) =>
        value === "none" && column === "matchedRule"
          ? "matchedRule IS NULL"
          : `${column} = ${quoted(value)}`,
      ),
      // The column holds a JSON array of names.
      ...(table.value ? [`contains(tables, ${quoted(JSON.stringify(table.value))})`] : []),
    ].join("\n  AND ");
  };
  return {
    list: QUESTIONS.map(([name, what, order]) => ({
      name,
      sql: () => `SELECT ${what}\nFROM proxy_logs\nWHERE ${where()}\n${order}`,
    })),
    filters: h(
      "details.pad",
      h("summary", "Of which requests?"),
      h(
        "div.form.short",
        field("From", from),
        field("To", until),
        field("Status", status),
        field("Rule", rule),
        field("User", user),
        field("Table", table),
      ),
    ),
  };
}

/** @param {string} value as a text of SQL */
const quoted = (value) => `'${value.replaceAll("'", "''")}'`;
