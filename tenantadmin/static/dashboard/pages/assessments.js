// Assessments: those that the user may see, and how to make one from a warehouse's own history.

import { call } from "../api.js";
import { DOCS } from "../config.js";
import { a, age, copyable, h, pageHead, panel, tablePanel, tabs, text, to } from "../ui.js";

/** The names of warehouses. @type {Record<Contract.AdapterType, string>} */
export const WAREHOUSES = {
  snowflake: "Snowflake",
  databricks: "Databricks",
  postgresql: "PostgreSQL",
};

/**
 * @type {Record<Contract.AdapterType, {file: string, more: string, steps: [string, string][]}>}
 *   what to run in each warehouse, as docs/assess.md says, and how the file that it gives is read
 */
const GUIDES = {
  snowflake: {
    file: "history.csv",
    more: "--price 3.00 --access access.csv --metering metering.csv",
    steps: [
      [
        "With a role that may read SNOWFLAKE.ACCOUNT_USAGE, export the statements as CSV, Parquet or JSON:",
        `SELECT query_id, query_text, database_name, schema_name, query_type, session_id, user_name, warehouse_name,
       warehouse_size, cluster_number, execution_status, start_time, total_elapsed_time, execution_time,
       bytes_scanned, bytes_written_to_result
FROM snowflake.account_usage.query_history WHERE start_time > dateadd(day, -30, current_timestamp());`,
      ],
      [
        "And which tables they accessed, as Snowflake resolved their names:",
        `SELECT query_id, direct_objects_accessed, objects_modified
FROM snowflake.account_usage.access_history WHERE query_start_time > dateadd(day, -30, current_timestamp());`,
      ],
      [
        "And what was billed, to check the model of the bill:",
        `SELECT start_time, warehouse_name, credits_used_compute
FROM snowflake.account_usage.warehouse_metering_history WHERE start_time > dateadd(day, -30, current_timestamp());`,
      ],
    ],
  },
  databricks: {
    file: "history.json",
    more: "--price 3.00 --metering metering.csv",
    steps: [
      [
        "Export the statements as CSV, Parquet or JSON:",
        `SELECT statement_id, statement_text, statement_type, session_id, executed_by, compute, execution_status,
       start_time, total_duration_ms, execution_duration_ms, from_result_cache, client_application
FROM system.query.history WHERE start_time > current_date() - 30;`,
      ],
      [
        "And what was billed, to check the model of the bill:",
        `SELECT usage_start_time, usage_metadata.warehouse_id, usage_quantity
FROM system.billing.usage WHERE usage_start_time > current_date() - 30;`,
      ],
    ],
  },
  postgresql: {
    file: "log/*.csv",
    more: "--price 1.00",
    steps: [
      [
        "Log all statements for some days, then take the files of the log:",
        `ALTER SYSTEM SET log_min_duration_statement = 0;
ALTER SYSTEM SET log_destination = 'csvlog';
SELECT pg_reload_conf();`,
      ],
    ],
  },
};

/** @type {Show} */
export async function show({ query }) {
  const { assessments } = await call("GET /tenants/assessments", {});
  const asked = query.get("from") ?? "";
  const from = asked in GUIDES ? /** @type {Contract.AdapterType} */ (asked) : "snowflake";
  return h(
    "div",
    pageHead(
      "Try it on your own history",
      "What a cache would save before a Gateway is there: which statements repeat, which rules would answer them, and what the bill would have been.",
    ),
    tablePanel(
      "Assessments",
      null,
      [
        text("Name", "name"),
        text("Warehouse", "source", (source) => WAREHOUSES[/** @type {"snowflake"} */ (source)]),
        age("Made", "createdAt"),
      ].map((column, index) =>
        index
          ? column
          : {
              ...column,
              cell: (row) => a(to(row.tenantId, "assessment"), h("strong", row.name)),
            },
      ),
      assessments,
      { none: "You have none yet. Below is how to make one." },
    ),
    guide(from),
  );
}

/** @param {Contract.AdapterType} from */
function guide(from) {
  const { file, more, steps } = GUIDES[from];
  return [
    tabs(
      Object.entries(WAREHOUSES).map(([source, name]) => [
        `#/assessments?from=${source}`,
        name,
        source === from,
      ]),
      "Warehouses",
    ),
    panel(
      `Make one from ${WAREHOUSES[from]}`,
      null,
      h(
        "div.pad.stack",
        steps.map(([words, sql]) => h("div.stack", h("p", words), copyable(sql, words))),
        h(
          "div.stack",
          h("p", "Then run this where the file is, in a clone of this service. Nothing leaves it."),
          copyable(
            `make assess FILE=${file} FROM=${from} ARGS='${more} --owner you@example.com'`,
            "Command",
          ),
        ),
        h(
          "p.muted",
          "The report stands above when the command has ended. ",
          a(`${DOCS}/guides/assess`, "All options, and how exact it is"),
        ),
      ),
    ),
  ];
}
