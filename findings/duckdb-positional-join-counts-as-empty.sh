#!/usr/bin/env bash
# DuckDB 1.5.6: the optimizer takes a POSITIONAL JOIN for empty, however large the tables are. So a join with a small
# table builds its hash table from the two million rows, and looks the thousand rows up in it. Most would expect the
# plan that the same rows get from one table: the hash table has the small one.
#
# Why it matters here: to put columns beside each other by position is the cheapest way to add outcomes to requests,
# and takes memory and time in the next join, where no plan of EXPLAIN says that a side is large.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check duckdb==1.5.6
"$dir/venv/bin/python" - <<'PYTHON'
import json

import duckdb

connection = duckdb.connect()
connection.execute("CREATE TABLE request AS SELECT i % 1000 AS k FROM range(2000000) r(i)")
connection.execute("CREATE TABLE outcome AS SELECT i % 7 AS status FROM range(2000000) r(i)")
connection.execute("CREATE TABLE wide AS FROM request POSITIONAL JOIN outcome")
connection.execute("CREATE TABLE name AS SELECT i AS k, i AS v FROM range(1000) r(i)")


def built_side(source: str) -> tuple[str, str | None]:
    """What the hash table of the join is built from, and the estimate of its rows."""
    statement = f"EXPLAIN (FORMAT json) SELECT status, sum(v) FROM ({source}) JOIN name USING (k) GROUP BY status"
    nodes = json.loads(connection.execute(statement).fetchall()[0][1])
    while nodes[0]["name"].strip() != "HASH_JOIN":
        nodes = nodes[0]["children"]
    built = nodes[0]["children"][1]
    return built["name"].strip(), built["extra_info"].get("Estimated Cardinality")


one, two = built_side("FROM wide"), built_side("FROM request POSITIONAL JOIN outcome")
print(f"duckdb {duckdb.__version__}: expected: built from the small table; seen: {one} and {two}")
assert one[0] in ("SEQ_SCAN", "TABLE_SCAN") and one[1] == "1000", one
assert two[0] == "POSITIONAL_SCAN" and two[1] in (None, "0"), two
PYTHON
