"""One timeline of all records: sign-ins and other events, revisions, raw-log reads, SQL queries.

A page of each source is read newest first by an index, and the pages are merged. No query reads a whole
table, whatever the filters are.
"""

from __future__ import annotations

import datetime as dt
import heapq
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q
from django.db.models.functions import Left

from accounts.cursors import older_than, read_cursor, write_cursor
from accounts.models import Event, Revision, Tenant
from accounts.models.events import EventKind
from logs.audit import REQUEST_KEY, REQUESTS_KEY
from logs.models import LogRead, QueryRun
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.errors import BadRequest
from tenantadmin.lib.database.lateral import first_of_each, merge_first

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from django.db.models import QuerySet

    from tenantadmin.lib.database.lateral import Sql

#: Characters shown of a statement, which may be a megabyte long.
_STATEMENT: Final = 1000


class Source(IntEnum):
    """The tables of the timeline. Rows with equal times are ordered by source, highest value first."""

    REVISION = 0
    READ = 1
    QUERY = 2
    EVENT = 3


#: Groups of event kinds, by prefix.
_PREFIXES: Final = {
    "sign-ins": ("sign-in.", "session.", "password.", "second-factor.", "identity."),
    "tokens": ("token.", "pat."),
    "rights": ("user.", "roles.", "membership.", "grant."),
    "staff": ("staff.",),
}
_GROUPED: Final = tuple(prefix for prefixes in _PREFIXES.values() for prefix in prefixes)
#: The event kinds of each group; the last group has all others.
EVENT_GROUPS: Final = {
    **{
        name: tuple(kind for kind in EventKind if kind.startswith(prefixes))
        for name, prefixes in _PREFIXES.items()
    },
    "other-events": tuple(kind for kind in EventKind if not kind.startswith(_GROUPED)),
}
SOURCE_KINDS: Final = {
    "documents": (Source.REVISION,),
    "logs": (Source.READ, Source.QUERY),
    "raw-reads": (Source.READ,),
    "queries": (Source.QUERY,),
    "figures": (Source.QUERY,),
}
#: Choices of the filter by kind: value and title, in groups.
KIND_CHOICES: Final = (
    (
        "Groups",
        (
            ("sign-ins", "Sign-ins and sessions"),
            ("tokens", "Tokens"),
            ("rights", "People and rights"),
            ("staff", "Acts of staff"),
            ("other-events", "Other events"),
            ("documents", "Changes of documents"),
            ("logs", "Reads of logs: all"),
            ("raw-reads", "Reads of logs: raw files and single requests"),
            ("queries", "Reads of logs: SQL that people wrote"),
            ("figures", "Reads of logs: by pages that show figures"),
        ),
    ),
    (
        "Events",
        tuple(
            (
                kind.value,
                kind.replace("pat.", "access token.").replace(".", ": ").replace("-", " ").capitalize(),
            )
            for kind in EventKind
        ),
    ),
)
KINDS: Final = frozenset(value for _, kinds in KIND_CHOICES for value, _ in kinds)


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Filters of the timeline, combined by AND.

    SQL that the service wrote for the figures of a page is left out unless ``kind`` asks for it: each page
    that a person opens may run some.

    Attributes:
        who: actor email. Matches exactly.
        what: event subject. Matches exactly.
        since, until: days of ``zone``, inclusive.
    """

    who: str = ""
    what: str = ""
    tenant: UUID | None = None
    account: UUID | None = None
    kind: str = ""
    since: dt.date | None = None
    until: dt.date | None = None
    zone: dt.tzinfo = dt.UTC

    def has(self, source: Source) -> bool:
        """Return True if rows of this source can match."""
        if self.what:
            return source is Source.EVENT and self.kind not in SOURCE_KINDS
        return not self.kind or source in SOURCE_KINDS.get(self.kind, (Source.EVENT,))

    @property
    def event_kinds(self) -> Sequence[str]:
        """The event kinds; empty means all."""
        return EVENT_GROUPS.get(self.kind, (self.kind,)) if self.kind else ()


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the timeline. ``row`` is its row of the source."""

    source: Source
    row: Any
    at: dt.datetime
    kind: str
    who: str
    #: The subject.
    what: str
    #: The change, as text.
    text: str
    #: An SQL statement, or the key of a raw log object.
    code: str = ""
    #: Reason of the refusal, or the reason that staff gave.
    reason: str = ""
    is_refused: bool = False
    address: str = ""
    request_id: str = ""

    @property
    def tenant_id(self) -> UUID | None:
        tenant: UUID | None = self.row.tenant_id
        return tenant

    @property
    def account_id(self) -> UUID | None:
        """The account; None for reads and queries, which store only the tenant."""
        return getattr(self.row, "account_id", None)

    @property
    def order(self) -> tuple[dt.datetime, int, int]:
        return self.at, self.source, self.row.pk


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of the timeline, newest first. ``cursor`` is None on the last page."""

    entries: Sequence[Entry] = field(default=())
    cursor: str | None = None


def read_audit(filters: AuditFilter, *, limit: int, cursor: str | None = None) -> AuditPage:
    """Return a page of the timeline.

    Raises:
        BadRequest: the cursor is not from this list.
    """
    after = None if cursor is None else _read_cursor(cursor)
    lists = [
        [_ENTRY[source](row) for row in _ROWS[source](filters, after, limit + 1)]
        for source in Source
        if filters.has(source)
    ]
    merged = heapq.merge(*lists, key=lambda entry: entry.order, reverse=True)
    found = list(islice(merged, limit + 1))
    if len(found) <= limit:
        return AuditPage(found)
    last = found[limit - 1]
    return AuditPage(found[:limit], write_cursor([last.at.isoformat(), int(last.source), last.row.pk]))


def walk_audit(filters: AuditFilter, *, page: int, most: int) -> Iterator[Sequence[Entry]]:
    """Yield pages of the timeline, up to ``most`` entries."""
    cursor = None
    for _ in range(-(-most // page)):
        found = read_audit(filters, limit=page, cursor=cursor)
        yield found.entries
        cursor = found.cursor
        if cursor is None:
            return


#: Time, source and id of the last entry of a page.
_After = tuple[str, int, int]


def _read_cursor(cursor: str) -> _After:
    moment, source, pk = read_cursor(cursor, (str, int, int))
    return moment, source, pk


def _in_time(
    rows: QuerySet[Any], filters: AuditFilter, after: _After | None, source: Source, *, time: str
) -> QuerySet[Any]:
    """Return the rows of the filter's days that come after the cursor, in the order of the timeline."""
    if filters.since is not None:
        rows = rows.filter(**{f"{time}__gte": dt.datetime.combine(filters.since, dt.time.min, filters.zone)})
    if filters.until is not None:
        rows = rows.filter(**{f"{time}__lte": dt.datetime.combine(filters.until, dt.time.max, filters.zone)})
    if after is not None:
        moment, last_source, pk = after
        # At the time of the cursor, rows of lower sources follow, and rows of higher sources came before.
        bound = pk if source == last_source else 2**63 - 1 if source < last_source else 0
        rows = older_than(rows, write_cursor([moment, bound]), time=time)
    return rows.order_by(f"-{time}", "-pk")


def _tenants_of(account: UUID) -> list[UUID]:
    return list(Tenant.objects.filter(account=account).values_list("pk", flat=True))


def _events(filters: AuditFilter, after: _After | None, count: int) -> Iterable[Event]:
    rows = _in_time(Event.objects.all(), filters, after, Source.EVENT, time="at")
    given = {"actor": filters.who, "subject": filters.what, "tenant_id": filters.tenant}
    given = {name: value for name, value in given.items() if value}
    rows = rows.filter(**given)
    kinds = filters.event_kinds
    if filters.account is not None:
        if kinds:
            rows = rows.filter(kind__in=kinds)
        tenants = _tenants_of(filters.account)
        if given:
            return rows.filter(Q(account_id=filters.account) | Q(tenant_id__in=tenants))[:count]
        of_account = rows.filter(account_id=filters.account)[:count].query.sql_with_params()
        of_tenants = first_of_each(rows, count, "tenant_id", tenants, kind="uuid")
        return merge_first(Event, [of_account, of_tenants], count, time="at")
    if kinds and not given:
        branches: list[Sql] = [first_of_each(rows, count, "kind", kinds, kind="text")]
        return merge_first(Event, branches, count, time="at")
    return (rows.filter(kind__in=kinds) if kinds else rows)[:count]


def _of_logs(
    rows: QuerySet[Any], source: Source, filters: AuditFilter, after: _After | None, count: int
) -> Iterable[Any]:
    """Return reads or queries, which store the tenant but not the account."""
    rows = _in_time(rows, filters, after, source, time="at")
    if filters.who:
        rows = rows.filter(email=filters.who)
    if filters.tenant is not None:
        rows = rows.filter(tenant_id=filters.tenant)
    if filters.account is None:
        return rows[:count]
    tenants = _tenants_of(filters.account)
    if filters.who or filters.tenant is not None:
        return rows.filter(tenant_id__in=tenants)[:count]
    branches = [first_of_each(rows, count, "tenant_id", tenants, kind="uuid")]
    return merge_first(rows.model, branches, count, time="at")


def _reads(filters: AuditFilter, after: _After | None, count: int) -> Iterable[LogRead]:
    return _of_logs(LogRead.objects.all(), Source.READ, filters, after, count)


def _queries(filters: AuditFilter, after: _After | None, count: int) -> Iterable[QueryRun]:
    rows = QueryRun.objects.defer("statement").annotate(opening=Left("statement", _STATEMENT))
    if filters.kind != "logs":
        rows = rows.filter(by_service=filters.kind == "figures")
    return _of_logs(rows, Source.QUERY, filters, after, count)


def _revisions(filters: AuditFilter, after: _After | None, count: int) -> Iterable[Revision]:
    rows = _in_time(Revision.objects.defer("document"), filters, after, Source.REVISION, time="changed_at")
    given = {"user": filters.who, "tenant_id": filters.tenant, "account_id": filters.account}
    return rows.filter(**{name: value for name, value in given.items() if value})[:count]


_ROWS: Final[Mapping[Source, Callable[[AuditFilter, _After | None, int], Iterable[Any]]]] = {
    Source.EVENT: _events,
    Source.READ: _reads,
    Source.QUERY: _queries,
    Source.REVISION: _revisions,
}


def _of_event(row: Event) -> Entry:
    act = (row.after or {}).get("act", "")
    is_refused = row.kind in {EventKind.SIGN_IN_FAILED, EventKind.TOKEN_REFUSED}
    return Entry(
        Source.EVENT,
        row,
        row.at,
        act or row.kind,
        row.actor,
        # The page shows the name of the tenant or account beside it.
        "" if row.subject in {str(row.tenant_id), str(row.account_id)} else row.subject,
        "",
        reason=row.reason,
        is_refused=is_refused,
        address=row.address,
        request_id=row.request_id,
    )


def _of_read(row: LogRead) -> Entry:
    return Entry(
        Source.READ,
        row,
        row.at,
        "raw log read",
        row.email,
        "",
        "",
        code=row.key.removeprefix(f"{row.tenant_id}/").removeprefix(REQUEST_KEY).removeprefix(REQUESTS_KEY),
        address=row.client_address,
        request_id=row.request_id,
    )


def _of_query(row: Any) -> Entry:
    is_refused = row.outcome not in {"ok", "running"}
    parts = [
        "" if row.rows is None else formats.count(row.rows, "row"),
        "" if row.duration_ms is None else f"in {formats.duration(row.duration_ms)}",
        "from a kept result" if row.from_kept_result else "",
        "on Spark" if row.engine == "spark" else "",
        "still running" if row.outcome == "running" else "",
    ]
    return Entry(
        Source.QUERY,
        row,
        row.at,
        "SQL query",
        row.email,
        "",
        " ".join(filter(None, parts)),
        code=row.opening,
        reason=row.message,
        is_refused=is_refused,
        address=row.client_address,
        request_id=row.request_id,
    )


def _of_revision(row: Revision) -> Entry:
    return Entry(
        Source.REVISION,
        row,
        row.changed_at,
        f"{row.kind}: {row.action}",
        row.user,
        "",
        row.text,
        reason=row.summary.get("comment", ""),
        request_id=row.request_id,
    )


_ENTRY: Final[Mapping[Source, Callable[[Any], Entry]]] = {
    Source.EVENT: _of_event,
    Source.READ: _of_read,
    Source.QUERY: _of_query,
    Source.REVISION: _of_revision,
}


def parse_day(text: str) -> dt.date | None:
    """Parse a day of a date field; None for an empty text.

    Raises:
        BadRequest: it is not a day.
    """
    if not text:
        return None
    try:
        day = dt.datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007
    except ValueError:
        raise BadRequest("Give days like 2026-03-31.") from None
    if not 1971 <= day.year <= 9000:
        raise BadRequest("Give a day of the years 1971 to 9000.")
    return day
