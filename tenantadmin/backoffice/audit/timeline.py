"""One timeline of all records: sign-ins and other events, revisions, raw-log reads, SQL queries.

Filters are given by a reader. A page of each source is read newest first by an index, and the pages are
merged. No query reads a whole table, whatever the filters are.
"""

from __future__ import annotations

import datetime as dt
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo, available_timezones

from django.db.models import Q
from django.db.models.functions import Left

from accounts.admin.finding import search_accounts, search_people, search_tenants
from accounts.cursors import older_than, read_cursor, write_cursor
from accounts.models import Event, Revision, Tenant
from accounts.models.history import RevisionKind
from logs.models import LogRead, QueryRun
from tenantadmin.backoffice.audit.entries import ENTRY_OF, EVENT_GROUPS, KINDS, SOURCE_KINDS, Source
from tenantadmin.lib.core.emails import normalize_email
from tenantadmin.lib.core.errors import BadRequest
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.plans import first_of_each, merge_first

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import QueryDict

    from tenantadmin.backoffice.audit.entries import Entry
    from tenantadmin.lib.database.plans import Sql


_FILTERS: Final = ("who", "what", "tenant", "account", "kind", "since", "until", "zone")
#: Buttons of the filter: the age of the first and the last day.
SPANS: Final = {"Today": (0, 0), "Yesterday": (1, 1), "7 days": (6, 0)}


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


def given_filters(query: QueryDict) -> dict[str, str]:
    """Return the filters in a query string, as texts. A button names a span of days."""
    texts = {name: query.get(name, "").strip().replace("\0", "")[:400] for name in _FILTERS}
    if (span := query.get("days", "")) in SPANS:
        today = now().astimezone(_zone_of(texts["zone"])).date()
        first, last = (today - dt.timedelta(days=age) for age in SPANS[span])
        texts |= {"since": first.isoformat(), "until": last.isoformat()}
    if not (texts["since"] or texts["until"]):
        texts["zone"] = ""
    return {name: text for name, text in texts.items() if text}


def _zone_of(name: str) -> dt.tzinfo:
    """Return the time zone with this name; UTC if there is none."""
    return ZoneInfo(name) if name in _find_zones() else dt.UTC


_find_zones: Final = cache(available_timezones)


class Unclear(BadRequest):
    """A filter means more than one person, tenant or account."""

    def __init__(self, name: str, text: str, choices: Sequence[tuple[str, str]]) -> None:
        super().__init__(f"“{text}” fits more than one. Choose:")
        #: The filter, and value and title of each choice.
        self.name, self.choices = name, choices


def parse_filters(given: Mapping[str, str]) -> AuditFilter:
    """Return the filters. People, tenants and accounts may be given by a word of the name.

    Raises:
        BadRequest: a filter is malformed, or it fits none.
        Unclear: it fits several.
    """
    kind = given.get("kind", "")
    if kind and kind not in KINDS:
        raise BadRequest(f"There is no kind '{kind}'.")
    filters = AuditFilter(
        who=_person("who", given.get("who", "")),
        what=_person("what", given.get("what", "")),
        kind=kind,
        since=_parse_day(given.get("since", "")),
        until=_parse_day(given.get("until", "")),
        zone=_zone_of(given.get("zone", "")),
    )
    if text := given.get("account"):
        accounts = [(account.pk, account.name) for account in search_accounts(text).first()]
        filters = replace(filters, account=_meant("account", text, accounts))
    if text := given.get("tenant"):
        tenants = [
            (tenant.pk, f"{tenant.name} of {tenant.account.name}") for tenant in search_tenants(text).first()
        ]
        filters = replace(filters, tenant=_meant("tenant", text, tenants))
    return filters


def _person(name: str, text: str) -> str:
    """Return the email that is meant, or the text: the name of a job, a domain, or a deleted user."""
    email = normalize_email(text)
    people = search_people(text).first() if text else []
    if not people or any(user.email == email for user in people):
        return email if "@" in text else text
    if len(people) > 1:
        raise Unclear(
            name, text, [(user.email, f"{user.email} {user.display_name}".strip()) for user in people]
        )
    return people[0].email


def _meant(name: str, text: str, found: Sequence[tuple[UUID, str]]) -> UUID:
    # What is deleted still has records.
    with suppress(ValueError):
        return UUID(text)
    if not found:
        raise BadRequest(f"No {name} is called '{text}'.")
    if len(found) > 1:
        raise Unclear(name, text, [(str(key), title) for key, title in found])
    return found[0][0]


def _parse_day(text: str) -> dt.date | None:
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
