#!/usr/bin/env bash
# sqlglot 30.30 writes PostgreSQL's to_char(time, format) for DuckDB as strftime. What it does not know of a format it
# leaves as text, and two parts it takes for others: D (Sunday is 1) for %u (Monday is 1), and WW for %U. It neither
# warns nor raises, also with unsupported_level=RAISE.
#
# Why it matters here: a report that moves from PostgreSQL to DuckDB shows AM for each hour and "Mon" for each month.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check sqlglot==30.30.0 duckdb==1.5.5
"$dir/venv/bin/python" - <<'PYTHON'
import duckdb
import sqlglot

print("sqlglot", sqlglot.__version__, "duckdb", duckdb.__version__)
# What PostgreSQL 18.4 answers for 2026-03-05 14:07:09, a Thursday.
EXPECTED = {
    "HH12:MI AM": "02:07 PM",
    "Mon DD": "Mar 05",
    'YYYY-"Q"Q': "2026-Q1",
    "HH24:MI:SS.MS": "14:07:09.000",
    "D": "5",
    "WW": "10",
}
seen = {}
for form, expected in EXPECTED.items():
    statement = f"SELECT to_char(timestamp '2026-03-05 14:07:09', '{form}')"
    (translated,) = sqlglot.transpile(
        statement, read="postgres", write="duckdb", unsupported_level=sqlglot.ErrorLevel.RAISE
    )
    (seen[form],) = duckdb.sql(translated).fetchone()
    print(f"{form:<14} expected: {expected:<13} seen: {seen[form]}")
assert list(seen.values()) == ["02:07 AM", "Mon 05", '2026-"Q"Q', "14:07:09.MS", "4", "09"], seen
PYTHON
