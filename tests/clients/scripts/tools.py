"""Tools of others read the log, and get the numbers that DuckDB itself answers, to the bit.

Arguments: the address of the service, the tenant, the personal access token. Prints the ways that were tried.
"""

from __future__ import annotations

import sys
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import sqlalchemy as sa
from sqlalchemy.dialects import registry
from tenantadmin_client import Client

registry.register("tenantadmin", "tenantadmin_client.sqlalchemy_dialect", "TenantadminDialect")

NUMBERS = """
    SELECT i, i / 3 AS ratio, i // 2 AS quotient, 0.1::DOUBLE * i AS doubles, i * 0.0004 AS price,
        9007199254740993 + i AS big, sum(9007199254740993) OVER (ORDER BY i) AS total,
        avg(i * 1.1) OVER (ORDER BY i) AS mean, if(i = 0, NULL, i * 1e300) AS gap
    FROM range(-3, 4) t(i) ORDER BY i
"""
MOMENTS = """
    SELECT TIMESTAMP '2026-03-01 07:00:01.123456' + to_hours(i) AS at, DATE '2026-03-01' + i::INTEGER AS day,
        to_microseconds(1500001 * i) AS took
    FROM range(-3, 4) t(i) ORDER BY i
"""


def main(url: str, tenant: str, pat: str) -> None:
    host = url.removeprefix("http://")
    engine = sa.create_engine(f"tenantadmin://token:{pat}@{host}/{tenant}?scheme=http")
    with Client(url, pat) as client, engine.connect() as connection:
        for statement in (NUMBERS, MOMENTS):
            expected = duckdb.sql(statement).fetchall()
            check("SQLAlchemy", connection.exec_driver_sql(statement).fetchall(), expected)
            frame = pd.read_sql(sa.text(statement), connection, coerce_float=False)
            check("pandas by SQLAlchemy", rows_of(frame), expected)
            check("Polars by SQLAlchemy", pl.read_database(statement, connection).rows(), expected)
        expected = duckdb.sql(NUMBERS).fetchall()
        result = client.sql(tenant, NUMBERS)
        check("pandas by Arrow", rows_of(result.pandas()), expected)
        check("Polars by Arrow", result.polars().rows(), expected)
        check("DuckDB by Arrow", duckdb.from_arrow(result.arrow()).fetchall(), expected)
        moment = pd.Timestamp(2026, 3, 1)
        parameters = (np.float64(0.1), np.int64(-(2**62)), np.bool_(True), moment, pd.NaT)
        answer = connection.exec_driver_sql("SELECT ?, ?, ?, ?, ?", parameters).fetchall()
        expected = [(0.1, -(2**62), True, moment.to_pydatetime(), None)]
        check("parameters of numpy and pandas", answer, expected)


def rows_of(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Return the rows with Python's values."""
    columns = [frame[name].astype(object).where(frame[name].notna(), None).tolist() for name in frame]
    read = {pd.Timestamp: pd.Timestamp.to_pydatetime, pd.Timedelta: pd.Timedelta.to_pytimedelta}
    return [
        tuple(read.get(type(value), lambda it: it)(value) for value in row)
        for row in zip(*columns, strict=True)
    ]


def check(way: str, rows: list[Any], expected: list[tuple[Any, ...]]) -> None:
    # 1 == 1.0 == Decimal(1), and -0.0 == 0.0.
    seen, right = ([[repr(value) for value in row] for row in table] for table in (rows, expected))
    assert seen == right, f"{way}: {seen} in place of {right}"
    sys.stdout.write(f"{way}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
