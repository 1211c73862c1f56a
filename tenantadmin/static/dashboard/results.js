// Rows of a query, and how to take them along.

import { send } from "./api.js";
import { h } from "./dom.js";
import * as f from "./format.js";
import { to } from "./router.js";
import { a, table } from "./ui.js";

/**
 * @param {string} tenant
 * @param {Contract.QueryAnswer} answer
 */
export function resultTable(tenant, answer) {
  const isNumber = (/** @type {string} */ type) => /INT|DOUBLE|FLOAT|DECIMAL/.test(type);
  const hasDay = answer.columns.some((one) => one.name === "day");
  return table(answer.columns.map(({ name, type }) => ({
    head: name, number: isNumber(type),
    cell: (/** @type {any} */ row) => cell(tenant, name, row[name], hasDay ? row.day : ""),
    sort: (/** @type {any} */ row) => (row[name] === null || typeof row[name] === "number" ? row[name] : String(row[name])),
    class: type === "VARCHAR" ? "value" : "",
  })), answer.rows, { label: "Result", limit: 200 });
}

/**
 * @param {string} tenant
 * @param {string} name
 * @param {any} value
 * @param {string} day
 */
function cell(tenant, name, value, day) {
  if (value === null) return h("span", { class: "muted" }, "NULL");
  if (name === "logId" && day) return a(to(tenant, "explain", { logId: value, day }), value);
  if (name === "timestamp" && typeof value === "number") return h("span", { title: String(value) }, f.when(value));
  if (typeof value === "number") return f.number(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/**
 * Run the statement again in another form, and hand the file to the reader.
 * @param {string} tenant
 * @param {string} sql
 * @param {"csv" | "parquet"} kind
 */
export async function download(tenant, sql, kind) {
  const accept = kind === "csv" ? "text/csv" : "application/vnd.apache.parquet";
  const response = await send("POST /tenants/{tenant}/query", { tenant, body: { sql } }, { accept });
  const named = /filename="?([^";]+)"?/.exec(response.headers.get("Content-Disposition") ?? "");
  const link = /** @type {HTMLAnchorElement} */ (h("a", { download: named?.[1] ?? `result.${kind}`, hidden: true }));
  link.href = URL.createObjectURL(await response.blob());
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
