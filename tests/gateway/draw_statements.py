"""Draw the vectors of statements: control statements, refusals, and which may share a cached result."""

from __future__ import annotations

from typing import Any, Final

from rules.dialects.control import find_control
from rules.dialects.words import Dialect
from tests.gateway.faces.reading import Reader
from tests.gateway.faces.refusals import describe_refusal, pack_error, refuse

_TEXTS: Final = (
    *("BEGIN", "begin transaction isolation level read committed", "START TRANSACTION", "COMMIT", "END"),
    *("ROLLBACK TO SAVEPOINT a", "SAVEPOINT a", "RELEASE SAVEPOINT a", "DISCARD ALL", "DEALLOCATE ALL"),
    *(
        "SET search_path TO a",
        "RESET ALL",
        "SHOW search_path",
        "SHOW TABLES",
        "USE WAREHOUSE w",
        "UNLISTEN *",
    ),
    *("ALTER SESSION SET autocommit=false", "ALTER TABLE a ADD b int", "FETCH FORWARD 10 FROM c", "CLOSE c"),
    *(
        "DECLARE c CURSOR FOR SELECT a FROM b",
        "COPY (SELECT a FROM b) TO STDOUT",
        "SELECT version()",
        "settle",
    ),
    *("/* dbt */ BEGIN", "-- a\n COMMIT;", "SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nRESET ALL;"),
    *(
        "BEGIN; DELETE FROM a; COMMIT",
        "SET a = ';'",
        "SELECT 'BEGIN'",
        "",
        "WITH a AS (SELECT 1) SELECT * FROM a",
    ),
)


def draw_control() -> list[dict[str, Any]]:
    """Return each text with its ``statementType`` and ``cacheStatus`` if it is a control statement."""
    vectors = []
    for text in _TEXTS:
        for dialect in (Dialect.POSTGRESQL, Dialect.SNOWFLAKE):
            found = find_control(text, dialect)
            expected = None if found is None else {"statementType": found[1], "cacheStatus": str(found[0])}
            vectors.append({"text": text, "adapterType": str(dialect), "expected": expected})
    return vectors


def draw_refusals() -> list[dict[str, Any]]:
    """Return what each protocol sends when the Gateway refuses, with the bytes of PostgreSQL's message."""
    vectors = []
    for adapter in ("snowflake", "databricks", "postgresql"):
        for status, rule in (
            ("BLOCKED", "no-secrets"),
            ("BLOCKED", "größen"),
            ("INVALIDATION_ERROR", "targets-written"),
            ("AUTH_ERROR", None),
        ):
            message = describe_refusal(status, rule)
            parts = refuse(adapter, status, message)
            expected = (
                {"fields": parts, "bytes": pack_error(parts).hex()}
                if adapter == "postgresql"
                else {"httpStatus": 200, "body" if adapter == "snowflake" else "TStatus": parts}
            )
            vectors.append(
                {"adapterType": adapter, "cacheStatus": status, "message": message, "expected": expected}
            )
    return vectors


_READ: Final = "SELECT amount FROM sales.orders WHERE id = 1"
_SETTINGS: Final = {"TimeZone": "UTC", "DateStyle": "ISO, MDY"}
_CONTEXT: Final[dict[str, Any]] = {
    "database": "sales",
    "schema": "public",
    "role": "reader",
    "settings": _SETTINGS,
    "format": "text",
}


def draw_keys() -> list[dict[str, Any]]:
    """Return pairs of requests that a rule without `varyBy` caches, and whether they share a result."""
    request = {"text": _READ, "parameterValues": [], "context": _CONTEXT}
    others: list[dict[str, Any]] = [
        {},
        *({"text": text} for text in (f"/* run 1 */ {_READ}", f"{_READ} -- 2", f"-- 'a\n/* it's */ {_READ}")),
        *({"text": _READ.replace("1", literal)} for literal in ("2", "'1'", "1.0", "'-- 1'", "'/* 1 */'")),
        *({"text": text} for text in (_READ.replace("id", '"id"'), _READ.replace("1", "$1"))),
        {"parameterValues": [1]},
        {"parameterValues": ["1"]},
        {"parameterValues": [None]},
        *({"context": {**_CONTEXT, name: "x"}} for name in ("database", "schema", "role", "format")),
        {"context": {**_CONTEXT, "settings": {**_SETTINGS, "TimeZone": "Asia/Tokyo"}}},
        {"context": {**_CONTEXT, "settings": dict(reversed([*_SETTINGS.items()]))}},
        {"context": {name: value for name, value in _CONTEXT.items() if name != "role"}},
    ]
    read = Reader("postgresql").read
    vectors = []
    for changed in others:
        other = {**request, **changed}
        is_same = (read(_READ).text, [], _CONTEXT) == (
            read(other["text"]).text,
            other["parameterValues"],
            other["context"],
        )
        vectors.append({"one": request, "other": other, "expected": is_same})
    return vectors
