"""Names of programs, by what they sent: 2026-11-28 and -29."""

from __future__ import annotations

import duckdb
import pytest

from logs.programs import PROGRAM, name_program


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        (
            "PythonConnector/4.8.1 (Linux-6.1.0-x86_64-with-glibc2.36) CPython/3.11.7",
            "Snowflake Connector for Python 4.8.1",
        ),
        (
            "PythonConnector/5.2.0 (linux-x86_64) CPython/3.11.7",
            "Snowflake Connector for Python 5.2.0",
        ),
        ("JavaScript/3.3.0 (linux-x64) NodeJS/22.16.0", "Snowflake driver for Node.js 3.3.0"),
        ("Go/1.19.0 (linux-amd64) gc/go1.24.4", "Snowflake driver for Go 1.19.0"),
        ("PyDatabricksSqlConnector/4.9.0", "Databricks SQL Connector for Python 4.9.0"),
        ("PyDatabricksSqlConnector/4.9.0 (entry)", "Databricks SQL Connector for Python 4.9.0"),
        ("PyDatabricksSqlConnector/4.9.0 (dbt-databricks/1.12.8)", "dbt 1.12.8"),
        (
            "NodejsDatabricksSqlConnector/2.1.0 (Node.js 20.20.2; Linux 6.1.0)",
            "Databricks SQL driver for Node.js 2.1.0",
        ),
        ("PostgreSQL JDBC Driver", "PostgreSQL JDBC driver"),
        ("dbt", "dbt"),
        ("dbt-cloud", "dbt-cloud"),
        ("nightly load", "nightly load"),
        ("", None),
        (None, None),
    ],
)
def test_what_they_sent(sent: str | None, name: str | None) -> None:
    assert name_program(sent) == name


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ("PyDatabricksSqlConnector/4.9.0 (dbt-databricks/1.12.8)", "dbt"),
        ("PyDatabricksSqlConnector/4.9.0", "Databricks SQL Connector for Python"),
        ("PostgreSQL JDBC Driver", "PostgreSQL JDBC driver"),
        ("Tableau/2024.2 ODBC/3.3.2", "Tableau"),
        ("Metabase v0.50.10 [5d1c2b1e]", "Metabase"),
        ("Mozilla/5.0 (X11; Linux x86_64)", "a web browser"),
        ("nightly load 7", "nightly load"),
        ("dbt-cloud", "dbt-cloud"),
        ("/4", "/4"),
        ("", None),
        (None, None),
    ],
)
def test_programs_are_counted_without_their_version(sent: str | None, name: str | None) -> None:
    row = duckdb.execute(f"SELECT {PROGRAM} FROM (SELECT ? AS userAgent)", [sent]).fetchone()
    assert row == (name,)
