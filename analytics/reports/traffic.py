"""The list of a tenant's requests, page by page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, Self
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from accounts.cursors import invalid_cursor, read_cursor, write_cursor
from analytics.reports.activity import NO_RULE
from analytics.reports.explain import describe_reasons
from logs.audit import REQUESTS_KEY, record_read
from logs.columns import CACHE_STATUSES
from logs.definitions import STORED_MISS
from logs.programs import NO_PROGRAM, PROGRAM
from logs.quoting import quote_value
from rules.conditions.patterns import fold_case, fold_case_sql
from tenantadmin.lib.core.structs import Count, JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp, show_time
from tenantadmin.lib.http.hal import Link, ListLinks

if TYPE_CHECKING:
    from analytics.reports.reading import LogReader, Span


#: Members of a request and the columns they come from, but for `timestamp`.
_COLUMNS: Final[Mapping[str, str]] = {
    "logId": "logId",
    "day": "day",
    "userName": "userName",
    "cacheStatus": "cacheStatus",
    "missReason": "missReason",
    "matchedRule": "matchedRule",
    "statement": "standardizedSql AS statement",
    "queryHash": "queryHash",
    "responseTimeMs": "responseTimeMs",
    "warehouseExecutionTimeMs": "warehouseExecutionTimeMs",
    "responseSize": "responseSize",
}
#: The rows of a window that are sorted as they are. A sort reads every column of every row.
_MANY: Final = 50_000
_SELECTED: Final = ", ".join(("timestamp", *_COLUMNS.values()))
NEWEST_FIRST: Final = "-timestamp"
_SORTED: Final = ("timestamp", "responseTimeMs", "warehouseExecutionTimeMs", "responseSize")
#: The values of ``sort``: a column, descending after ``-``.
SORTS: Final = (NEWEST_FIRST, "timestamp", *(f"{sign}{name}" for name in _SORTED[1:] for sign in ("-", "")))


class LoggedTraffic(JsonStruct):
    """One entry of the log; columns of `proxy_logs`."""

    log_id: str | None
    at: Annotated[
        Timestamp | None, Meta(description="Null where the entry has no timestamp of the years 1970 to 9999.")
    ]
    day: date
    user_name: str | None
    cache_status: Annotated[
        Annotated[str, one_of(CACHE_STATUSES)] | None,
        Meta(description="A value outside the twelve statuses is shown as it was logged."),
    ]
    miss_reason: str | None
    matched_rule: str | None
    statement: Annotated[str | None, Meta(description="`standardizedSql`")]
    query_hash: str | None
    response_time_ms: int
    warehouse_execution_time_ms: int | None
    response_size: int


class MissReasonCount(JsonStruct):
    """How many misses have a reason, and what it means."""

    reason: Annotated[str | None, Meta(description="`missReason` of the log.")]
    requests: Count
    text: str


class TrafficLinks(ListLinks):
    """``next`` is absent on the last page."""

    next: Link | None = None


class Traffic(JsonStruct):
    """A page of requests, by `sort`, then timestamp and `logId`, descending, with nulls last."""

    links: TrafficLinks = msgspec.field(name="_links")
    tenant_id: UUID
    requests: list[LoggedTraffic]
    sql: Annotated[str, Meta(description="The statement that gives the same rows, to run yourself.")]
    miss_reasons: Annotated[
        list[MissReasonCount] | UnsetType,
        Meta(description="On the first page of `status=MISS`: all that fit, by reason, the most first."),
    ] = UNSET


@dataclass(frozen=True, slots=True)
class TrafficFilter:
    """The requests to list. A condition that is None does not apply."""

    status: str | None = None
    #: The id of a rule, or `NO_RULE`.
    rule: str | None = None
    user: str | None = None
    #: A part of `standardizedSql`; case is ignored.
    statement: str | None = None
    query_hash: str | None = None
    min_ms: int | None = None
    #: A name of `PROGRAM`, or `NO_PROGRAM`.
    program: str | None = None

    def is_broad(self) -> bool:
        """Return True if most requests are likely to fit, and it costs little to see which do."""
        return self == TrafficFilter(min_ms=self.min_ms)

    def conditions(self) -> list[str]:
        """Return the SQL conditions."""
        equal = {"cacheStatus": self.status, "userName": self.user, "queryHash": self.query_hash}
        found = [f"{name} = {quote_value(value)}" for name, value in equal.items() if value is not None]
        if self.rule == NO_RULE:
            found.append("matchedRule IS NULL")
        elif self.rule is not None:
            found.append(f"matchedRule = {quote_value(self.rule)}")
        if self.program is not None:
            found.append(program_condition(self.program))
        if self.statement is not None:
            part = quote_value(fold_case(self.statement))
            found.append(f"contains({fold_case_sql('standardizedSql')}, {part})")
        if self.min_ms is not None:
            found.append(f"responseTimeMs >= {self.min_ms}")
        return found


def program_condition(program: str) -> str:
    """Return the SQL condition for requests of a program."""
    return f"{PROGRAM} IS NULL" if program == NO_PROGRAM else f"{PROGRAM} = {quote_value(program)}"


class _Order:
    """The order of the list: by ``sort``, then the newest first. Nulls are last.

    Attributes:
        keys: the columns that place a row, and whether they descend.
    """

    def __init__(self, sort: str) -> None:
        self.sort = sort
        chosen = {sort.removeprefix("-"): sort.startswith("-")}
        newest = dict.fromkeys(("timestamp", "logId", "day"), True)
        self.keys: Mapping[str, bool] = chosen | newest | chosen

    @property
    def names(self) -> list[str]:
        """What a cursor names the order by: nothing if it is the newest first, as in earlier releases."""
        return [] if self.sort == NEWEST_FIRST else [self.sort]

    @property
    def column(self) -> str:
        """The column that the list is sorted by."""
        return next(iter(self.keys))

    def first(self) -> str:
        """Return the SQL order by that column alone."""
        return f"{self.column} {_DIRECTIONS[self.keys[self.column]]}"

    def __str__(self) -> str:
        placed = [
            # Each entry has a day.
            f"{name} {_DIRECTIONS[descends]}" if name != "day" else "day DESC"
            for name, descends in self.keys.items()
        ]
        # Entries without a logId can share time and day. Their other columns give them one order in every
        # query; rows that agree in all columns look the same.
        return ", ".join([*placed, *(name for name in _COLUMNS if name not in self.keys)])

    def up_to(self, bound: int) -> str:
        """Return the SQL condition for the rows that come no later than those with this value."""
        return f"{self.column} {'>=' if self.keys[self.column] else '<='} {bound}"


_DIRECTIONS: Final = {True: "DESC NULLS LAST", False: "ASC NULLS LAST"}


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in the order of the list, and how many rows at this place are on earlier pages."""

    order: _Order
    #: The value of each of the order's keys.
    values: tuple[str | int | None, ...]
    given: int

    @classmethod
    def read(cls, cursor: str, order: _Order) -> Self:
        """Return the place that a cursor names.

        Raises:
            BadRequest: it is no cursor of this list in this order.
        """
        named = order.names
        *texts, given = read_cursor(cursor, (*(str for _ in [*named, *order.keys]), int))
        if texts[: len(named)] != named or given < 1:
            raise invalid_cursor()
        try:
            values = tuple(map(_read_value, order.keys, texts[len(named) :]))
        except ValueError:
            raise invalid_cursor() from None
        return cls(order, values, given)

    @classmethod
    def of(cls, page: Sequence[Mapping[str, Any]], order: _Order, *, after: Self | None) -> Self:
        """Return the place of the last row of a page."""
        values = tuple(page[-1][name] for name in order.keys)
        given = sum(tuple(row[name] for name in order.keys) == values for row in page)
        if after is not None and after.values == values:
            given += after.given
        return cls(order, values, given)

    def cursor(self) -> str:
        texts = [
            "" if value is None else f"={value}" if name == "logId" else f"{value}"
            for name, value in zip(self.order.keys, self.values, strict=True)
        ]
        return write_cursor([*self.order.names, *texts, self.given])

    def condition(self) -> str:
        """Return the SQL condition for the rows at this place and after it."""
        found = ""
        for (name, descends), value in reversed([*zip(self.order.keys.items(), self.values, strict=True)]):
            literal = quote_value(value) if isinstance(value, str) else "NULL" if value is None else value
            same = f"{name} IS NOT DISTINCT FROM {literal}" + (f" AND {found}" if found else "")
            later = (
                "" if value is None else f"{name} {'<' if descends else '>'} {literal} OR {name} IS NULL OR "
            )
            found = f"({later}({same}))"
        return found


def _read_value(name: str, text: str) -> str | int | None:
    """Return a value of a cursor.

    Raises:
        ValueError: the column has no such value.
    """
    if not text:
        return None
    if name == "logId":
        return text[1:]
    if name == "day":
        return date.fromisoformat(text).isoformat()
    number = int(text)
    if abs(number) >= 2**63:
        raise ValueError("The number has more than 64 bits.")
    return number


class TrafficPage(NamedTuple):
    requests: list[LoggedTraffic]
    #: The statement that gives the same rows.
    sql: str
    #: The cursor of the next page, or None.
    cursor: str | None
    miss_reasons: list[MissReasonCount] | UnsetType


def list_traffic(
    log: LogReader,
    *,
    span: Span,
    matching: TrafficFilter,
    limit: int,
    cursor: str | None,
    sort: str = NEWEST_FIRST,
) -> TrafficPage:
    """Return a page of requests, in the order ``sort``, which is one of `SORTS`.

    The read of the log is recorded in the audit before it happens. A page stays right while days are built
    again: its cursor names the last row, not its number.

    Raises:
        ApiError: the query failed.
        BadRequest: the cursor is invalid.
    """
    order = _Order(sort)
    place = None if cursor is None else _Place.read(cursor, order)
    record_read(log.reader, tenant=log.tenant, key=f"{REQUESTS_KEY}{span}")
    conditions = [*span.conditions(), *matching.conditions()]
    if place is not None:
        conditions.append(place.condition())
    given = 0 if place is None else place.given
    offset = f" OFFSET {given}" if given else ""
    found = f"FROM proxy_logs WHERE {' AND '.join(conditions)}"
    statement = f"SELECT {_SELECTED} {found} ORDER BY {order} LIMIT "
    rows: list[dict[str, Any]] = []
    if matching.is_broad() and log.count_rows(span.days) > _MANY:
        # No row of the page comes after the row behind its last one. The sorted column is read first, and the
        # others only where it is not later. (DuckDB 1.5 has a fault with both in one statement.)
        behind = log.rows(
            f"SELECT {order.column} {found} ORDER BY {order.first()} LIMIT 1 OFFSET {given + limit}"
        )
        if behind and (bound := behind[0][order.column]) is not None:
            nearest = f"SELECT {_SELECTED} {found} AND {order.up_to(bound)} ORDER BY {order}"
            rows = log.rows(f"{nearest} LIMIT {limit + 1}{offset}")
    if len(rows) <= limit:
        # Also where a build between the two has taken rows away.
        rows = log.rows(f"{statement}{limit + 1}{offset}")
    page = rows[:limit]
    following = _Place.of(page, order, after=place).cursor() if len(rows) > limit else None
    reasons = (
        _count_reasons(log, found) if page and place is None and matching.status in STORED_MISS else UNSET
    )
    return TrafficPage([_request(row) for row in page], f"{statement}{limit}{offset}", following, reasons)


def _count_reasons(log: LogReader, found: str) -> list[MissReasonCount]:
    """Return why the misses that are found were misses, the most frequent reason first."""
    rows = log.rows(
        "SELECT missReason AS reason, count(*) AS requests, min(cacheTtlSeconds) AS least,"
        f" max(cacheTtlSeconds) AS most {found} GROUP BY missReason ORDER BY requests DESC, reason"
    )
    return [
        MissReasonCount(
            reason=row["reason"],
            requests=row["requests"],
            text=describe_reasons(
                row["reason"], kept=None if row["least"] is None else (row["least"], row["most"])
            ),
        )
        for row in rows
    ]


def _request(row: Mapping[str, Any]) -> LoggedTraffic:
    values = {name: row[name] for name in _COLUMNS}
    return msgspec.convert({**values, "at": show_time(row["timestamp"])}, LoggedTraffic)
