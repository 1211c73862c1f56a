// Read the log at PostgreSQL's port by npm's pg: arguments as of log.py.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [modules, text] = process.argv.slice(2);
const { Client } = createRequire(`${modules}/`)("pg");
const { host, port, database, password, authority } = JSON.parse(text);
const ssl = { ca: readFileSync(authority, "utf8") };
const client = new Client({ host, port, database, password, ssl, user: "anyone" });
await client.connect();
const values = ["u2"];
const count = await client.query({
  name: "counted",
  text: 'SELECT "userName", count(*) AS n FROM proxy_logs WHERE "userName" <> $1 GROUP BY 1 ORDER BY 1',
  values,
  rowMode: "array",
});
const several = await client.query("SELECT 1 AS one; SELECT count(*) AS n FROM proxy_logs");
const { rows } = await client.query("SELECT max(time) AS last FROM proxy_logs_time");
console.log(
  JSON.stringify({ count: count.rows, several: several.map((one) => one.rows), last: rows[0].last instanceof Date }),
);
await client.end();
