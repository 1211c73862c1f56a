#!/usr/bin/env bash
# databricks-sql-connector 4.9.0 tells the server the type of each parameter. For a Decimal it counts the characters of
# its text, and Python writes those below 0.000001 with an exponent. So 0.0000001 is sent as '1E-7' of the type
# DECIMAL(4,0), and 0.00000015 as DECIMAL(5,4): the cast that the type asks for makes both 0. Nothing is raised. Most
# would expect the smallest type that can contain the value, as the code says of itself: DECIMAL(7,7) and DECIMAL(8,8).
#
# Why it matters here: a price per byte or per row is bound as 0, in conditions and in INSERT. To a proxy such
# parameters look right, as it sees their texts.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check databricks-sql-connector==4.9.0 \
    duckdb==1.5.6 2>/dev/null
"$dir/venv/bin/python" -W ignore - <<'PYTHON'
from decimal import Decimal
from importlib.metadata import version

import duckdb
from databricks.sql.parameters.native import dbsql_parameter_from_primitive

print("databricks-sql-connector", version("databricks-sql-connector"), "casts by duckdb", duckdb.__version__)
seen = {}
for text in ("0.000001", "0.0000001", "0.00000015", "-0.0000001"):
    sent = dbsql_parameter_from_primitive(Decimal(text), name="price").as_tspark_param(named=True)
    value, type_ = sent.value.stringValue, sent.type
    (cast,) = duckdb.execute(f"SELECT CAST('{value}' AS {type_})").fetchone()
    print(f"Decimal('{text}'): expected: {text} seen: '{value}' of type {type_}, which is {cast}")
    seen[text] = (type_, cast == 0)
assert seen == {
    "0.000001": ("DECIMAL(6,6)", False),
    "0.0000001": ("DECIMAL(4,0)", True),
    "0.00000015": ("DECIMAL(5,4)", True),
    "-0.0000001": ("DECIMAL(5,0)", True),
}, seen
PYTHON
