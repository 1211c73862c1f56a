"""One timeline of all records: sign-ins and other events, revisions, raw-log reads, SQL queries.

A page of each source is read newest first by an index, and the pages are merged. No query reads a whole
table, whatever the filters are.
"""

from __future__ import annotations

import datetime as dt
import heapq
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q
from django.db.models.functions import Left

from accounts.cursors import older_than, read_cursor, write_cursor
from accounts.models import Event, Revision, Tenant
from accounts.models.history import RevisionKind
from logs.models import LogRead, QueryRun
from tenantadmin.backoffice.audit.entries import ENTRY_OF
from tenantadmin.backoffice.audit.kinds import Source
from tenantadmin.lib.database.plans import first_of_each, merge_first

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from django.db.models import QuerySet

    from tenantadmin.backoffice.audit.entries import Entry
    from tenantadmin.backoffice.audit.filters import AuditFilter
    from tenantadmin.lib.database.plans import Sql

#: Characters shown of a statement, which may be a megabyte long.
_STATEMENT: Final = 1000


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
        [ENTRY_OF[source](row) for row in _ROWS[source](filters, after, limit + 1)]
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
    given["kind"] = filters.kind if filters.kind in RevisionKind else ""
    return rows.filter(**{name: value for name, value in given.items() if value})[:count]


_ROWS: Final[Mapping[Source, Callable[[AuditFilter, _After | None, int], Iterable[Any]]]] = {
    Source.EVENT: _events,
    Source.READ: _reads,
    Source.QUERY: _queries,
    Source.REVISION: _revisions,
}
