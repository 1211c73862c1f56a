"""The columns of ``proxy_logs``, and its partition column ``day``.

Contract: "Query log entry and ``proxy_logs``". Compaction, the SQL view and the table in docs/sql.md are made
from `COLUMNS`. Code that works with certain columns names them itself: the rollups, the demo, and the rule
language, whose keys a test compares with this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from logs.definitions import NOT_CACHED, STATUSES

#: The last millisecond (epoch) of the year 9999. Later timestamps are read as null, and so are negative ones.
MAX_TIMESTAMP: Final = 253_402_300_799_999


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
    example: object
    unit: str | None = None
    never_null: bool = False
    json_text: bool = False


_V, _B, _I, _F = SqlType.VARCHAR, SqlType.BIGINT, SqlType.INTEGER, SqlType.BOOLEAN
_REQUEST, _CACHE, _SQL, _CORRELATION, _CALLER = Group

COLUMNS: Final[tuple[Column, ...]] = (
    Column("timestamp", _B, _REQUEST, "request time, epoch ms", example=1767225600000, unit="epoch ms"),
    Column("userName", _V, _REQUEST, "display name of the consumer", example="ana"),
    Column("statusCode", _I, _REQUEST, "status returned to the consumer", example=200),
    Column(
        "responseSize",
        _B,
        _REQUEST,
        "bytes; never null; 0 absent, -1 unmeasured",
        example=20480,
        unit="bytes",
        never_null=True,
    ),
    Column("requestSize", _B, _REQUEST, "bytes; null when unmeasured", example=512, unit="bytes"),
    Column(
        "responseTimeMs",
        _B,
        _REQUEST,
        "end-to-end ms through the proxy; never null; 0 unmeasured",
        example=42,
        unit="ms",
        never_null=True,
    ),
    Column(
        "warehouseExecutionTimeMs",
        _I,
        _REQUEST,
        "ms the warehouse spent; null when unmeasured or never reached",
        example=1850,
        unit="ms",
    ),
    Column("cacheStatus", _V, _CACHE, "one of the twelve statuses", example="HIT"),
    Column(
        "missReason",
        _V,
        _CACHE,
        "no-cache-entry, ttl-expired or invalidation-marker; null when not a miss",
        example="ttl-expired",
    ),
    Column("cacheKey", _V, _CACHE, f"computed key; null for {NOT_CACHED.text}", example="3f8a9c52d0b14e67"),
    Column("cacheKeyVersion", _I, _CACHE, "version of the key scheme", example=1),
    Column("matchedRule", _V, _CACHE, "stable id of the matched rule", example="sales-dashboards"),
    Column("matchedRuleName", _V, _CACHE, "human-readable rule name", example="Sales dashboards"),
    Column("ruleVersion", _V, _CACHE, "rule version when served", example="019a1b2c3d4e00000007"),
    Column("cacheTtlSeconds", _I, _CACHE, "TTL applied, seconds", example=3600, unit="seconds"),
    Column("cacheAgeSeconds", _I, _CACHE, "entry age when served, seconds", example=120, unit="seconds"),
    Column("cacheExpiresAt", _B, _CACHE, "expiry, epoch ms", example=1767229200000, unit="epoch ms"),
    Column(
        "standardizedSql",
        _V,
        _SQL,
        "normalized statement, literals removed",
        example="SELECT sum(amount) FROM sales.orders WHERE day = ?",
    ),
    Column(
        "queryHash",
        _V,
        _SQL,
        "statement hash; cached paths hash statement plus bound parameters",
        example="9b2d0c7e5a1f48c3",
    ),
    Column(
        "parameterValues", _V, _SQL, "JSON text of bound values", example='["2026-01-01"]', json_text=True
    ),
    Column("statementType", _V, _SQL, "SELECT, INSERT and so on", example="SELECT"),
    Column("isReadOnly", _F, _SQL, "only reads", example=True),
    Column("isDataChange", _F, _SQL, "modifies data", example=False),
    Column("isDDL", _F, _SQL, "changes schema", example=False),
    Column(
        "cacheOverride",
        _V,
        _SQL,
        "cache or nocache from a SQL-comment directive; null if none",
        example="nocache",
    ),
    Column("hasParameters", _F, _SQL, "parameterized", example=True),
    Column("hasNonDeterministicFunctions", _F, _SQL, "calls a non-deterministic function", example=False),
    Column("tableCount", _I, _SQL, "number of tables referenced", example=1),
    Column("tables", _V, _SQL, "JSON text array; null when none", example='["sales.orders"]', json_text=True),
    Column("logId", _V, _CORRELATION, "raw log record id", example="log-000001"),
    Column(
        "queryId",
        _V,
        _CORRELATION,
        "the warehouse's own query id",
        example="01b2c3d4-0000-1111-2222-333344445555",
    ),
    Column("sessionId", _V, _CORRELATION, "session of the consumer", example="session-17"),
    Column("operationId", _V, _CORRELATION, "operation of the protocol", example="op-42"),
    Column("operationType", _V, _CORRELATION, "kind of operation", example="EXECUTE_STATEMENT"),
    Column("adapterType", _V, _CORRELATION, "databricks, snowflake or postgresql", example="databricks"),
    Column(
        "serverHostname", _V, _CORRELATION, "host of the warehouse", example="adb-1234.azuredatabricks.net"
    ),
    Column(
        "clientIp", _V, _CALLER, "address resolved by the Gateway's trusted-proxy rules", example="10.1.2.3"
    ),
    Column("userTokenHash", _V, _CALLER, "hash of the caller token", example="5f4dcc3b5aa765d6"),
    Column("userAgent", _V, _CALLER, "User-Agent, verbatim", example="PowerBI/2.1"),
    Column("host", _V, _CALLER, "Host, verbatim", example="sales.gateway.localhost"),
    Column("origin", _V, _CALLER, "Origin, verbatim", example="https://bi.example.com"),
    Column("referer", _V, _CALLER, "Referer, verbatim", example="https://bi.example.com/report/7"),
    Column("connection", _V, _CALLER, "Connection, verbatim", example="keep-alive"),
    Column("contentType", _V, _CALLER, "Content-Type, verbatim", example="application/json"),
    Column("contentLength", _V, _CALLER, "Content-Length, header text", example="512"),
    Column("contentEncoding", _V, _CALLER, "Content-Encoding, verbatim", example="gzip"),
    Column("acceptEncoding", _V, _CALLER, "Accept-Encoding, verbatim", example="gzip, deflate"),
    Column("xForwardedFor", _V, _CALLER, "X-Forwarded-For, verbatim", example="203.0.113.7, 10.0.0.1"),
    Column("xForwardedProto", _V, _CALLER, "X-Forwarded-Proto, verbatim", example="https"),
    Column("xForwardedHost", _V, _CALLER, "X-Forwarded-Host, verbatim", example="sales.gateway.localhost"),
    Column("xRealIp", _V, _CALLER, "X-Real-IP, verbatim", example="203.0.113.7"),
)

#: The partition column: VARCHAR ``YYYY-MM-DD`` (UTC), the date of the object's prefix.
DAY: Final = "day"

DAY_COLUMN: Final = Column(
    DAY, SqlType.VARCHAR, Group.REQUEST, "the UTC day, `YYYY-MM-DD`, of the log object", example="2026-01-01"
)

BY_NAME: Final[dict[str, Column]] = {column.name: column for column in COLUMNS}

#: The twelve values of ``cacheStatus``, in the contract's order.
CACHE_STATUSES: Final[tuple[str, ...]] = (*STATUSES,)
