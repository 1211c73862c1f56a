#!/bin/bash
# SQLAlchemy's generic types on DuckDB, through duckdb-engine: Float has 32 bits, and Numeric without a precision
# has three digits after the point. BI tools read logs of SQL proxies in this way, and their times are
# milliseconds since 1970: a cast to Float moves one by 52 seconds, and a cast to Numeric makes a price per
# gigabyte 0. No warning says so. Python's float has 64 bits, and PostgreSQL's NUMERIC has all digits.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet 'duckdb==1.5.5' 'duckdb-engine==0.17.0' 'sqlalchemy==2.0.58'
"$folder/venv/bin/python" - <<'PYTHON'
import sys
import warnings
from decimal import Decimal
from importlib.metadata import version

import sqlalchemy as sa

warnings.simplefilter("ignore")
print(*(f"{name} {version(name)}" for name in ("duckdb", "duckdb-engine", "sqlalchemy")), sep=", ")
with sa.create_engine("duckdb:///:memory:").connect() as connection:
    moment = connection.scalar(sa.select(sa.cast(sa.literal_column("1764374400123"), sa.Float)))
    price = connection.scalar(sa.select(sa.cast(sa.literal_column("0.0004"), sa.Numeric)))
print("cast(1764374400123, Float)   expected 1764374400123.0, seen", moment)
print("cast(0.0004, Numeric)        expected 0.0004, seen", price)
sys.exit(not (moment == 1764374347776.0 and price == Decimal(0)))
PYTHON
