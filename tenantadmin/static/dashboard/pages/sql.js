// SQL over the log: completion, questions, queries saved in this browser, values of parameters, CSV and
// Parquet.

import { call } from "../api.js";
import { readActivity } from "../days.js";
import { createEditor } from "../editor.js";
import * as f from "../format.js";
import { questions } from "../questions.js";
import * as results from "../results.js";
import { STATUSES } from "../statuses.js";
import {
  badge,
  beside,
  button,
  failure,
  field,
  fill,
  h,
  input,
  notify,
  pageHead,
  panel,
  skeleton,
  to,
} from "../ui.js";

/** @typedef {{name: string, sql: string}} Kept */

const FILES = /** @type {const} */ ([
  ["CSV", "csv"],
  ["CSV for Excel", "excel"],
  ["Parquet", "parquet"],
]);

/** What the service fills in (logs/queries.py). */
const PARAMETER = /\{\{\s*([A-Za-z]\w{0,39})\s*\}\}/g;

const WORDS = [
  "SELECT",
  "FROM proxy_logs",
  "WHERE day =",
  "GROUP BY",
  "ORDER BY",
  "LIMIT",
  "count(*)",
  "sum(",
  "avg(",
  "quantile_cont(",
  "DISTINCT",
  "CASE WHEN",
  "BETWEEN",
];

/** @type {Show} */
export async function show(context) {
  const { tenant, query } = context;
  const key = `dashboard.queries.${tenant}`;
  const [{ lastDay }, { meaning, columns }] = await Promise.all([
    readActivity(tenant),
    call("GET /tenants/{tenant}/query/schema", { tenant }),
  ]);
  const { list: samples, filters } = await questions(tenant, lastDay ?? f.yesterday());
  const output = h("div");
  const editor = await createEditor({
    mode: "sql",
    text: query.get("sql") ?? read(key)[0]?.sql ?? samples[0].sql(),
    label: "SQL",
    low: true,
    signal: context.signal,
    words: () => [
      ...columns.map(({ name: value }) => ({ value, meta: "column" })),
      ...WORDS.map((value) => ({ value, meta: "SQL" })),
    ],
    change: () => drawValues(),
    run: () => run(),
  });
  const values = h("div.form.short");
  const drawValues = () => {
    const given = valuesOf(values);
    const names = [...editor.value().matchAll(PARAMETER)].map(([, name]) => name);
    fill(
      values,
      [...new Set(names)].map((name) => field(name, input(name, given[name]))),
    );
  };
  drawValues();
  const columnList = h(
    "dl.columns-list",
    columns.map((one) => [
      h(
        "dt",
        h(
          "button",
          {
            type: "button",
            class: "link mono",
            onclick: () => editor.insert(one.name === "timestamp" ? '"timestamp"' : one.name),
          },
          one.name,
        ),
        beside(` ${one.type}`),
      ),
      h(
        "dd.muted.small",
        one.meaning,
        one.unit && !one.meaning.includes(one.unit) && ` (${one.unit})`,
        one.name === "cacheStatus" &&
          Object.entries(STATUSES).map(([name, [text, meaning]]) =>
            h("div", h("code", name), ` ${text}. ${meaning}`),
          ),
      ),
    ]),
  );
  let running = new AbortController();
  const run = async () => {
    running.abort();
    running = new AbortController();
    const { signal } = running;
    const sql = editor.value().trim();
    history.replaceState(null, "", to(tenant, "sql", { sql }));
    fill(output, skeleton(2));
    editor.annotate([]);
    const start = performance.now();
    try {
      const given = valuesOf(values);
      const answer = await results.run(tenant, sql, signal, given);
      fill(
        output,
        panel(
          f.count(answer.rowCount, "row"),
          [
            answer.truncated && badge("cut at the row limit", "warn"),
            beside(f.duration(performance.now() - start)),
            ...FILES.map(([name, kind]) =>
              button(name, () => results.download(tenant, sql, kind, given), "small"),
            ),
          ],
          results.resultTable(tenant, answer),
        ),
      );
    } catch (error) {
      if (signal.aborted) return;
      fill(output, panel("No result", null, failure(error)));
      const message = output.innerText;
      for (const [, line] of message.matchAll(/line (\d+), column/g))
        editor.annotate([{ line: Number(line), severity: "error", message }]);
    }
  };
  context.signal.addEventListener("abort", () => running.abort());

  const keptList = h("ul.findings", { "aria-label": "Queries" });
  /** @param {{name: string, sql: string | (() => string)}} one @param {() => void} [forget] */
  const entry = (one, forget) =>
    h(
      "li.row.nowrap",
      h(
        "button",
        {
          type: "button",
          class: "grow",
          title: typeof one.sql === "string" && one.sql,
          onclick: () => {
            editor.set(typeof one.sql === "string" ? one.sql : one.sql());
            // The rows below are of another query.
            fill(output);
          },
        },
        one.name,
      ),
      forget &&
        h(
          "button",
          { type: "button", class: "fit", "aria-label": `Forget ${one.name}`, onclick: forget },
          "×",
        ),
    );
  const drawKept = () =>
    fill(
      keptList,
      read(key).map((one) => entry(one, () => write(one.name))),
      samples.map((one) => entry(one)),
    );
  /**
   * @param {string} name
   * @param {...Kept} kept what replaces the query of this name; none: forget it
   */
  const write = (name, ...kept) => {
    localStorage.setItem(
      key,
      JSON.stringify([...kept, ...read(key).filter((one) => one.name !== name)].slice(0, 50)),
    );
    drawKept();
  };
  const keep = () => {
    const sql = editor.value().trim();
    const name = prompt("Save the query as", sql.split("\n")[0].slice(0, 60));
    if (!name) return;
    write(name, { name, sql });
    notify("Saved in this browser, for you alone.");
  };
  drawKept();
  return h(
    "div",
    pageHead(
      "SQL",
      [h("code", "proxy_logs"), `: ${meaning} Name a day: it is much faster.`],
      button("Save query", keep),
      button("Run", run, "primary"),
    ),
    h(
      "div.split",
      h("div", panel("Statement", beside("Ctrl + Enter runs it"), editor.element, values), output),
      h(
        "div",
        panel("Questions", beside("saved ones first"), filters, keptList),
        h("details.panel", h("summary.panel-head.strong", "Columns"), h("div.pad", columnList)),
      ),
    ),
  );
}

/** @param {Element} fields @returns {Texts} what is given for the parameters of the statement */
const valuesOf = (fields) =>
  Object.fromEntries([...fields.querySelectorAll("input")].map((one) => [one.name, one.value]));

/** @param {string} key @returns {Kept[]} */
function read(key) {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "[]");
  } catch {
    return [];
  }
}
