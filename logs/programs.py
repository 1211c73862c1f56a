"""Name the program of a request by ``userAgent``: a User-Agent, or the ``application_name`` of PostgreSQL.

With its version it is of one request; without, requests are counted and filtered by it.

`make test-drivers` compares the table with what drivers send. Most drivers of PostgreSQL send nothing.
"""

from __future__ import annotations

import re
from typing import Final

from logs.quoting import quote_text

#: Patterns of the beginning, with the version as group 1, and names. The first that matches counts.
_PROGRAMS: Final = [
    (re.compile(pattern), name)
    for pattern, name in (
        (r"PyDatabricksSqlConnector/\S+ \(dbt-databricks/([\d.]+)\)", "dbt"),
        (r"PyDatabricksSqlConnector/([\d.]+)", "Databricks SQL Connector for Python"),
        (r"NodejsDatabricksSqlConnector/([\d.]+) ", "Databricks SQL driver for Node.js"),
        (r"PythonConnector/([\d.]+) ", "Snowflake Connector for Python"),
        (r"JavaScript/([\d.]+) .*NodeJS/", "Snowflake driver for Node.js"),
        (r"Go/([\d.]+) .*gc/", "Snowflake driver for Go"),
        (r"PostgreSQL JDBC Driver$()", "PostgreSQL JDBC driver"),
        (r"dbt$()", "dbt"),
    )
]


def name_program(user_agent: str | None) -> str | None:
    """Return the name of a program with its version; an unknown text as it is, and None for none."""
    if not user_agent:
        return None
    for pattern, name in _PROGRAMS:
        if (match := pattern.match(user_agent)) is not None:
            return f"{name} {match[1]}".rstrip()
    return user_agent


#: The filter for requests that name no program.
NO_PROGRAM: Final = "none"
#: What no driver sends.
_BROWSERS: Final = ("Mozilla/", "a web browser")
#: A name that the table lacks: what stands before a version or a bracket.
_NAME: Final = r"^([^/(\[]*?)\s*(?:/|\sv?[0-9]|[(\[]|$)"


def _program_sql() -> str:
    known = [*((pattern.pattern, name) for pattern, name in _PROGRAMS), _BROWSERS]
    whens = " ".join(
        f"WHEN regexp_matches(userAgent, {quote_text(f'^{pattern}')}) THEN {quote_text(name)}"
        for pattern, name in known
    )
    other = f"coalesce(nullif(regexp_extract(userAgent, {quote_text(_NAME)}, 1), ''), userAgent)"
    return f"CASE WHEN coalesce(userAgent, '') = '' THEN NULL {whens} ELSE {other} END"


#: SQL over ``proxy_logs`` for the name of a request's program without a version, or null.
PROGRAM: Final = _program_sql()
