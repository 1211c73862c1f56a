#!/usr/bin/env bash
# polars 2.1.0 takes the columns of NDJSON from the first 100 rows, and leaves out what comes later: a key, and a key of
# a nested object. Nothing is raised, though a later value of another type is an error. Most would expect the column
# with nulls before, as pyarrow and DuckDB give, or an error here too. infer_schema_length=None reads all rows first.
#
# Why it matters here: a log whose entries got a new field loses it, in all rows, if the file begins with older ones.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check polars==2.1.0 pyarrow==26.0.1 duckdb==1.5.6 2>/dev/null
venv/bin/python - <<'PYTHON'
import json

import duckdb
import polars as pl
import pyarrow.json

print("polars", pl.__version__)
rows = [{"id": number, "cost": {"bytes": 1}} for number in range(100)]
rows += [{"id": 100, "cost": {"bytes": 1, "credits": 2}, "rule": "r1"}]
with open("log.ndjson", "w") as file:
    file.writelines(json.dumps(row) + "\n" for row in rows)

assert pyarrow.json.read_json("log.ndjson").to_pylist()[-1] == rows[-1]
assert duckdb.sql("SELECT id, cost, rule FROM 'log.ndjson'").fetchall()[-1] == tuple(rows[-1].values())
seen = [pl.read_ndjson("log.ndjson").to_dicts()[-1], pl.scan_ndjson("log.ndjson").collect().to_dicts()[-1]]
whole = pl.read_ndjson("log.ndjson", infer_schema_length=None).to_dicts()[-1]
for name, row in zip(("read_ndjson", "scan_ndjson"), seen, strict=True):
    print(f"the last row by {name}: expected: {rows[-1]} seen: {row}")
print(f"the last row with infer_schema_length=None: {whole}")
assert whole == rows[-1], whole
assert seen == [{"id": 100, "cost": {"bytes": 1}}] * 2, seen

with open("log.ndjson", "a") as file:
    file.write('{"id": 1.5, "cost": {"bytes": 1}}\n')
try:
    pl.read_ndjson("log.ndjson")
except pl.exceptions.ComputeError as error:
    print("a later 1.5 for a whole number is an error:", error)
else:
    raise AssertionError("it was read")
PYTHON
