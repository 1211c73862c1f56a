"""The columns of ``proxy_logs``, and its partition column ``day``.

Contract: "Query log entry and ``proxy_logs``". Compaction, the SQL view and the table in docs/sql.md are made
from `COLUMNS`. Code that works with certain columns names them itself: the rollups, the demo, and the rule
language, whose keys a test compares with this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Group(StrEnum):
    """The section of the contract that lists a column."""

    REQUEST = "request"
    CACHE = "cache decision"
    SQL = "sql"
    CORRELATION = "correlation"
    CALLER = "caller"


class SqlType(StrEnum):
    """A column's DuckDB type, as in ``columns[].type`` of a query result."""

    VARCHAR = "VARCHAR"
    BIGINT = "BIGINT"
    INTEGER = "INTEGER"
    BOOLEAN = "BOOLEAN"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of ``proxy_logs``.

    A ``never_null`` column is 0 if the raw entry has null or lacks the field. A ``json_text`` column holds
    JSON as text; a raw entry may contain the text or the value itself.
    """

    name: str
    type: SqlType
    group: Group
    meaning: str
    never_null: bool = False
    json_text: bool = False


def _columns(group: Group, *rows: tuple[str, SqlType, str]) -> tuple[Column, ...]:
    return tuple(
        Column(
            name,
            sql_type,
            group,
            meaning,
            never_null=name in {"responseSize", "responseTimeMs"},
            json_text=name in {"tables", "parameterValues"},
        )
        for name, sql_type, meaning in rows
    )


_V, _B, _I, _F = SqlType.VARCHAR, SqlType.BIGINT, SqlType.INTEGER, SqlType.BOOLEAN

COLUMNS: Final[tuple[Column, ...]] = (
    *_columns(
        Group.REQUEST,
        ("timestamp", _B, "request time, epoch ms"),
        ("userName", _V, "display name of the consumer"),
        ("statusCode", _I, "status returned to the consumer"),
        ("responseSize", _B, "bytes; never null; 0 absent, -1 unmeasured"),
        ("requestSize", _B, "bytes; null when unmeasured"),
        ("responseTimeMs", _B, "end-to-end ms through the proxy; never null; 0 unmeasured"),
        ("warehouseExecutionTimeMs", _I, "ms the warehouse spent; null when unmeasured or never reached"),
    ),
    *_columns(
        Group.CACHE,
        ("cacheStatus", _V, "one of the twelve statuses"),
        ("missReason", _V, "no-cache-entry, ttl-expired or invalidation-marker; null when not a miss"),
        ("cacheKey", _V, "computed key; null for BYPASS and PASSTHROUGH"),
        ("cacheKeyVersion", _I, "version of the key scheme"),
        ("matchedRule", _V, "stable id of the matched rule"),
        ("matchedRuleName", _V, "human-readable rule name"),
        ("ruleVersion", _V, "rule version when served"),
        ("cacheTtlSeconds", _I, "TTL applied, seconds"),
        ("cacheAgeSeconds", _I, "entry age when served, seconds"),
        ("cacheExpiresAt", _B, "expiry, epoch ms"),
    ),
    *_columns(
        Group.SQL,
        ("standardizedSql", _V, "normalized statement, literals removed"),
        ("queryHash", _V, "statement hash; cached paths hash statement plus bound parameters"),
        ("parameterValues", _V, "JSON text of bound values"),
        ("statementType", _V, "SELECT, INSERT and so on"),
        ("isReadOnly", _F, "only reads"),
        ("isDataChange", _F, "modifies data"),
        ("isDDL", _F, "changes schema"),
        ("cacheOverride", _V, "cache or nocache from a SQL-comment directive; null if none"),
        ("hasParameters", _F, "parameterized"),
        ("hasNonDeterministicFunctions", _F, "calls a non-deterministic function"),
        ("tableCount", _I, "number of tables referenced"),
        ("tables", _V, "JSON text array; null when none"),
    ),
    *_columns(
        Group.CORRELATION,
        ("logId", _V, "raw log record id"),
        ("queryId", _V, "the warehouse's own query id"),
        ("sessionId", _V, "session of the consumer"),
        ("operationId", _V, "operation of the protocol"),
        ("operationType", _V, "kind of operation"),
        ("adapterType", _V, "databricks, snowflake or postgresql"),
        ("serverHostname", _V, "host of the warehouse"),
    ),
    *_columns(
        Group.CALLER,
        ("clientIp", _V, "address resolved by the Gateway's trusted-proxy rules"),
        ("userTokenHash", _V, "hash of the caller token"),
        ("userAgent", _V, "User-Agent, verbatim"),
        ("host", _V, "Host, verbatim"),
        ("origin", _V, "Origin, verbatim"),
        ("referer", _V, "Referer, verbatim"),
        ("connection", _V, "Connection, verbatim"),
        ("contentType", _V, "Content-Type, verbatim"),
        ("contentLength", _V, "Content-Length, header text"),
        ("contentEncoding", _V, "Content-Encoding, verbatim"),
        ("acceptEncoding", _V, "Accept-Encoding, verbatim"),
        ("xForwardedFor", _V, "X-Forwarded-For, verbatim"),
        ("xForwardedProto", _V, "X-Forwarded-Proto, verbatim"),
        ("xForwardedHost", _V, "X-Forwarded-Host, verbatim"),
        ("xRealIp", _V, "X-Real-IP, verbatim"),
    ),
)

#: The partition column: VARCHAR ``YYYY-MM-DD`` (UTC), the date of the object's prefix.
DAY: Final = "day"

BY_NAME: Final[dict[str, Column]] = {column.name: column for column in COLUMNS}

#: The twelve values of ``cacheStatus``, in the contract's order.
CACHE_STATUSES: Final[tuple[str, ...]] = (
    "HIT",
    "MISS",
    "BYPASS",
    "PASSTHROUGH",
    "SPOOFED",
    "TELEMETRY",
    "ERROR",
    "INVALIDATION_ERROR",
    "AUTH_ERROR",
    "EXECUTOR",
    "HOLD",
    "BLOCKED",
)
