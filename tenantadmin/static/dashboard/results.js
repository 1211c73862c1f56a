// Rows of a query, and how to take them along.

import { send } from "./api.js";
import { Exact, parseExact, writeExact } from "./exactjson.js";
import * as f from "./format.js";
import { can } from "./people.js";
import { STATUSES, meaning } from "./statuses.js";
import { a, beside, h, table, to } from "./ui.js";

/** @param {string} sql @param {Texts} [parameters] */
const bodyOf = (sql, parameters) => ({
  sql,
  ...(parameters && Object.keys(parameters).length > 0 && { parameters }),
});

/**
 * @param {string} tenant
 * @param {string} sql
 * @param {AbortSignal} [signal]
 * @param {Texts} [parameters] their values
 * @returns {Promise<Contract.QueryAnswer>} the numbers of its rows are `Exact`
 */
export async function run(tenant, sql, signal, parameters) {
  const body = bodyOf(sql, parameters);
  const text = await (
    await send("POST /tenants/{tenant}/query", { tenant, body }, { signal })
  ).text();
  const answer = parseExact(text);
  return { ...answer, rowCount: Number(answer.rowCount) };
}

/** @param {string} tenant @param {Contract.QueryAnswer} answer of `run` */
export function resultTable(tenant, answer) {
  const isNumber = (/** @type {string} */ type) => /INT|DOUBLE|FLOAT|DECIMAL/.test(type);
  const hasDay = answer.columns.some((one) => one.name === "day");
  return table(
    answer.columns.map(({ name, type }) => ({
      head: name,
      number: isNumber(type),
      cell: (/** @type {any} */ row) => cell(tenant, name, row[name], hasDay ? row.day : ""),
      sort: (/** @type {any} */ row) =>
        row[name] instanceof Exact
          ? row[name].order
          : row[name] === null
            ? null
            : String(row[name]),
      class: type === "VARCHAR" ? "value" : "",
    })),
    answer.rows,
    { label: "Result", none: "No row fits." },
  );
}

/**
 * @param {string} tenant
 * @param {string | null | undefined} logged `tables` of the log: what leads to a rule of these
 *   tables
 */
export function ruleButton(tenant, logged) {
  const tables = JSON.parse(logged ?? "[]").join(",");
  return (
    tables &&
    can(tenant, "write") &&
    h("a.button", { href: to(tenant, "rules/edit", { tables }) }, "Make a rule for its tables")
  );
}

/** @param {string} tenant @param {string} name @param {any} value @param {string} day */
function cell(tenant, name, value, day) {
  if (value === null) return h("span.muted", "NULL");
  if (name === "logId" && day) return a(to(tenant, "explain", { logId: value, day }), value);
  if (name === "cacheStatus")
    return h("span", { title: meaning(value) }, value, beside(" ", STATUSES[value]?.[0]));
  if (name === "timestamp" && value instanceof Exact)
    return h("span", { title: f.when(Number(value)) }, value.text);
  if (typeof value !== "string") return writeExact(value);
  return value.length > 50 ? h("details.long", h("summary", value)) : value;
}

/**
 * Run the statement again, and hand its file to the reader.
 * @param {string} tenant
 * @param {string} sql
 * @param {"csv" | "excel" | "parquet"} kind `excel`: CSV with a byte order mark, by which Excel
 *   knows that it is UTF-8
 * @param {Texts} parameters
 */
export async function download(tenant, sql, kind, parameters) {
  const accept = kind === "parquet" ? "application/vnd.apache.parquet" : "text/csv; for=people";
  const response = await send(
    "POST /tenants/{tenant}/query",
    { tenant, body: bodyOf(sql, parameters) },
    { accept },
  );
  const file = new Blob([...(kind === "excel" ? ["\uFEFF"] : []), await response.blob()]);
  handOver(file, `result-${f.today()}.${kind === "parquet" ? kind : "csv"}`);
}

/** @param {Blob} file @param {string} name hand a file to the reader */
export function handOver(file, name) {
  const link = h("a", { download: name, hidden: true });
  link.href = URL.createObjectURL(file);
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
