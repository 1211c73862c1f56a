"""Verify documents: compare them with the published queries over the log, on the same builds."""

from __future__ import annotations

import datetime as dt
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import duckdb
from msgspec import Meta

from analytics.models import Kind, MergedRollup, SummaryDocument
from analytics.numbers.days import mark_days_stale
from analytics.numbers.merged import HISTORY, merged_digest, period_bounds, source_digest
from analytics.numbers.store import day_builds, has_outdated_days, read_document, read_merged_rollups
from analytics.numbers.users import UserSource, find_user_source, user_document
from analytics.published.queries import (
    MAX_DIFFERENCES,
    PublishedQuery,
    UnequalValue,
    assemble,
    compare,
    queries_of,
)
from analytics.reports.savings import compute_savings, find_again, find_source, forget, read_savings
from logs.models import Partition, PendingBuild
from logs.partitions import partitions_with_file
from logs.queries import document_limits, rows_of, run_query
from logs.sources import local_copies
from logs.sql.protocol import EngineUnavailable
from logs.sql.source import make_source
from tenantadmin.lib.core.errors import BadRequest, Conflict, NotFound
from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.core.structs import Count, JsonStruct
from tenantadmin.lib.core.timestamps import format_timestamp, parse_timestamp
from tenantadmin.lib.objectstore import ObjectStore, StoreError

if TYPE_CHECKING:
    from logs.audit import Reader


#: Savings are not stored. They are computed when they are read, and kept for an hour.
SAVINGS: Final = "savings"
#: The documents that can be verified.
DOCUMENTS: Final[tuple[str, ...]] = (*Kind.values, SAVINGS)

#: The format of the period of each kind of document, and an example.
_PERIODS: Final[Mapping[str, tuple[str, str]]] = {
    Kind.DAY: (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "2026-03-01"),
    Kind.MONTH: (r"[0-9]{4}-[0-9]{2}", "2026-03"),
    **dict.fromkeys((Kind.YEAR, Kind.RULES, Kind.OPPORTUNITIES), (r"[0-9]{4}", "2026")),
    Kind.USERS: ("", ""),
    SAVINGS: (r"[0-9]{4}(-[0-9]{2}){0,2}", "2026-03"),
}
_PER_USER: Final = (Kind.DAY, Kind.MONTH, Kind.YEAR)


class InvalidKey(ValueError):
    """No such document can exist. ``field`` is the wrong member: ``period`` or ``userId``."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def check_key(kind: str, period: str, *, is_of_user: bool) -> None:
    """Check that a kind of document can have this period and this user.

    Raises:
        InvalidKey: the message says what to send.
    """
    pattern, example = _PERIODS[kind]
    cure = f"Give a period like {example}." if example else "Leave the period out: it is the whole history."
    if not re.fullmatch(pattern, period):
        raise InvalidKey("period", cure)
    try:
        # The calendar must have this date.
        date.fromisoformat(period + "0001-01-01"[len(period) :])
    except ValueError as error:
        raise InvalidKey("period", cure) from error
    if is_of_user and kind not in _PER_USER:
        names = ", ".join(_PER_USER)
        raise InvalidKey("userId", f"Only these documents are made for single users: {names}.")


class BuildMoved(Conflict):
    """In both attempts, a build was replaced during the verification."""

    message = "The document is being built again. Wait a minute and retry."


class MadeByAnotherRelease(Conflict):
    """The document or its days have another version, and wait for being built again."""

    def __init__(self, tenant: UUID) -> None:
        super().__init__(
            "Another release of the service made this document. The service makes it again within half an"
            f" hour; `manage.py rebuild --tenant {tenant}` makes it now."
        )


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """A document: its kind (one of `DOCUMENTS`), its period, and its user.

    A period is like ``2026-03-01``, ``2026-03``, ``2026`` or empty.
    """

    tenant: UUID
    kind: str
    period: str
    user: str | None = None

    @property
    def is_about_users(self) -> bool:
        """True if the document has data of single users."""
        return self.user is not None or self.kind == Kind.USERS

    @property
    def days(self) -> tuple[date, date]:
        """The first and the last day of the period."""
        return period_bounds(self.period)

    @property
    def activity_days(self) -> tuple[date, date]:
        """The days whose activity a year's document may show: the year and 364 days before it."""
        _, last = self.days
        return (date(last.year - 1, 1, 2) if last.year > 1 else date.min), last


class RunQuery(JsonStruct):
    name: str
    sql: Annotated[str, Meta(description="The statement to run yourself.")]
    ms: Count


class Verification(JsonStruct):
    """Whether a document says what SQL over the log says."""

    component = "VerificationAnswer"

    equal: bool
    fields: Annotated[Count, Meta(description="How many values were compared.")]
    unequal_count: Count
    unequal: Annotated[
        list[UnequalValue], Meta(description=f"The first {MAX_DIFFERENCES} values that differ.")
    ]
    queries: list[RunQuery]


def verify_savings(store: ObjectStore, *, key: DocumentKey, reader: Reader) -> Verification:
    """Compare the savings of a day, month or year, by day, with the published query on the same builds.

    A kept document that differs is computed again on the next request.

    Raises:
        BadRequest: the period has too many log entries.
        BuildMoved: a build was replaced in both attempts.
        ApiError: the query failed.
    """
    first, last = key.days
    for _ in range(_ATTEMPTS):
        source = find_source(tenant=key.tenant, first=first, last=last, step="day")
        try:
            etag, body = read_savings(store, source, reader=reader)
            started = time.monotonic()
            savings = compute_savings(store, source, reader=reader)
        except (EngineUnavailable, StoreError, duckdb.IOException):
            if find_again(source) == source:
                raise
            continue
        if etag != source.etag or find_again(source) != source:
            continue
        comparison = compare(json.loads(body), json.loads(dump_json(savings)))
        if comparison.unequal_count:
            forget(source)
        ms = int(1000 * (time.monotonic() - started))
        queries = [RunQuery(name=query.name, sql=query.sql, ms=ms) for query in savings.queries]
        return Verification.of(comparison, equal=not comparison.unequal_count, queries=queries)
    raise BuildMoved


#: A larger document, such as a day of a million statements, is too large to compare in one request.
MAX_DOCUMENT_BYTES: Final = 64 << 20
_ATTEMPTS: Final = 2


@dataclass(frozen=True, slots=True)
class _Builds:
    """The builds that the document and the queries read. They are equal if no build was replaced.

    Attributes:
        partitions: day, object keys and build of each day with entries.
        source: a digest of the builds of the document.
        is_current: the document was made from the builds of ``partitions``.
        built_at: the time when a stored document was built.
    """

    partitions: tuple[tuple[date, tuple[str, ...], str], ...]
    source: str | UserSource
    is_current: bool
    built_at: dt.datetime | None = None


def verify_document(store: ObjectStore, *, key: DocumentKey, reader: Reader) -> Verification:
    """Compare a document with the published queries. Every query is audited under the name of ``reader``.

    A document that differs is marked as stale, so that it is built again.

    Raises:
        NotFound: the period has no log entry.
        BadRequest: the document is too large.
        BuildMoved: a build was replaced in both attempts.
        MadeByAnotherRelease: the document waits for being built again.
        ApiError: a query failed.
    """
    if key.kind == SAVINGS:
        return verify_savings(store, key=key, reader=reader)
    for _ in range(_ATTEMPTS):
        builds = _read_builds(key)
        if not builds.is_current:
            continue
        try:
            document = _read_document(store, key, builds)
            rows, queries = _run_queries(store, key, builds, reader=reader)
        except (EngineUnavailable, StoreError, duckdb.IOException):
            # A file may be missing because it was replaced.
            if _read_builds(key) == builds:
                raise
            continue
        if _read_builds(key) == builds:
            comparison = compare(document, assemble(rows, constants=_constants(key, builds, document)))
            if comparison.unequal_count:
                _mark_wrong(store, key)
            return Verification.of(comparison, equal=not comparison.unequal_count, queries=queries)
    if not builds.is_current and _is_of_another_release(key):
        raise MadeByAnotherRelease(key.tenant)
    raise BuildMoved


def _mark_wrong(store: ObjectStore, key: DocumentKey) -> None:
    """Mark what a wrong document is made from as stale. The document stays until it is built again."""
    if key.kind == Kind.DAY:
        first, last = key.days
        mark_days_stale(store, tenant=key.tenant, first=first, last=last)
        return
    if key.user is not None:
        MergedRollup.objects.filter(tenant_id=key.tenant, period=key.period).update(source="")
    documents = SummaryDocument.objects.filter(tenant_id=key.tenant, kind=key.kind, period=key.period)
    documents.update(source="")


def _is_of_another_release(key: DocumentKey) -> bool:
    """Return True if a document that is not current has days of another version, or no build is pending."""
    first, last = key.activity_days if key.kind == Kind.YEAR else key.days
    days = [item for item in day_builds(tenant=key.tenant) if first <= item.day <= last]
    is_pending = PendingBuild.objects.filter(tenant_id=key.tenant).exists()
    return any(item.is_outdated for item in days) or not is_pending


def stored_keys(tenant: UUID) -> list[DocumentKey]:
    """Return the keys of all stored documents of a tenant: days first, the history last."""
    rows = SummaryDocument.objects.filter(tenant_id=tenant).order_by("kind", "period")
    keys = [DocumentKey(tenant, kind, period) for kind, period in rows.values_list("kind", "period")]
    return sorted(keys, key=lambda key: (DOCUMENTS.index(key.kind), key.period))


def savings_keys(tenant: UUID) -> list[DocumentKey]:
    """Return the keys of the savings of each month with data."""
    months = [key.period for key in stored_keys(tenant) if key.kind == Kind.MONTH]
    return [DocumentKey(tenant, SAVINGS, month) for month in months]


def _read_builds(key: DocumentKey) -> _Builds:
    """Return the builds of a document.

    Raises:
        NotFound: the document does not exist.
    """
    first, last = key.activity_days if key.kind == Kind.YEAR else key.days
    days = partitions_with_file(tenant=key.tenant).filter(day__range=(first, last))
    files = tuple((row.day, tuple(row.files), row.build) for row in days.defer("hours"))
    if key.user is not None:
        return _read_user_builds(key, files)
    stored = SummaryDocument.objects.filter(tenant_id=key.tenant, kind=key.kind, period=key.period)
    row = stored.values_list("source", "etag", "built_at").first()
    if row is None:
        raise _no_entry()
    source, etag, built_at = row
    if key.kind == Kind.DAY:
        is_outdated = has_outdated_days(tenant=key.tenant, period=key.period)
        is_current = [source] == [build for _, _, build in files] and not is_outdated
    else:
        is_current = source == source_digest(key.period, day_builds(tenant=key.tenant))
    return _Builds(files, f"{source} {etag}", is_current, built_at)


def _read_user_builds(key: DocumentKey, partitions: tuple[tuple[date, tuple[str, ...], str], ...]) -> _Builds:
    source = find_user_source(tenant=key.tenant, user=key.user or "", period=key.period)
    if source is None:
        raise _no_entry()
    is_current = True
    if key.kind != Kind.DAY:
        builds = day_builds(tenant=key.tenant)
        merged = read_merged_rollups(tenant=key.tenant, periods=source.files.keys())
        is_current = all(item.source == merged_digest(period, builds) for period, item in merged.items())
    return _Builds(partitions, source, is_current)


def _read_document(store: ObjectStore, key: DocumentKey, builds: _Builds) -> Any:
    """Return the document as JSON.

    Raises:
        NotFound: the user has no entry in the period.
        BadRequest: the document is too large.
    """
    if isinstance(builds.source, str):
        stored = read_document(tenant=key.tenant, kind=Kind(key.kind), period=key.period)
        if stored is None:
            raise _no_entry()
        _require_size(stored.bytes)
        if not stored.file:
            return json.loads(stored.body)
        with store.open(stored.file) as stream:
            return json.load(stream)
    document = user_document(store, builds.source)
    if document is None:
        raise _no_entry()
    if isinstance(document, bytes):
        return json.loads(document)
    with document:
        _require_size(document.seek(0, 2))
        document.seek(0)
        return json.load(document)


def _require_size(size: int) -> None:
    if size > MAX_DOCUMENT_BYTES:
        raise BadRequest(
            f"The document has {size} bytes; at most {MAX_DOCUMENT_BYTES} can be verified. Verify the "
            "document of a shorter period or of one user."
        )


def _run_queries(
    store: ObjectStore, key: DocumentKey, builds: _Builds, *, reader: Reader
) -> tuple[dict[str, list[dict[str, Any]]], list[RunQuery]]:
    """Run the queries of the document. Return their rows by name, and the queries that ran."""
    source = make_source(
        store,
        copies=local_copies(),
        tenant=str(key.tenant),
        files=[(day.isoformat(), file) for day, files, _ in builds.partitions for file in files],
        has_positions=True,
    )
    rows: dict[str, list[dict[str, Any]]] = {}
    ran: list[RunQuery] = []
    for query in queries_of(key.kind):
        first, last = _days_of(query, key, builds)
        result = run_query(
            store,
            tenant=key.tenant,
            statement=query.over(first, last, user=key.user, exact=True),
            reader=reader,
            source=source,
            limits=document_limits(),
            by_service=True,
        )
        if result.truncated:
            raise BadRequest(f"The query {query.name} has too many rows to compare. Verify a shorter period.")
        rows[query.name] = rows_of(result)
        sql = query.over(first, last, user=key.user)
        ran.append(RunQuery(name=query.name, sql=sql, ms=result.elapsed_ms))
    return rows, ran


def _days_of(query: PublishedQuery, key: DocumentKey, builds: _Builds) -> tuple[date, date]:
    """Return the values of ``$first`` and ``$last``."""
    if query.name == "year.last365daysQueryActivity":
        return key.activity_days
    if key.period == HISTORY:
        days = [day for day, _, _ in builds.partitions]
        return days[0], days[-1]
    return key.days


def _constants(key: DocumentKey, builds: _Builds, document: Any) -> dict[str, Any]:
    """Return the fields that no query gives: the document's identity, and the time of the list of users."""
    match key.kind:
        case Kind.MONTH:
            return {"month": key.days[0].month}
        case Kind.YEAR:
            return {
                "tenantSummaryReportID": f"{key.tenant}-{key.period}",
                "tenantId": str(key.tenant),
                "reportyears": [key.period],
            }
        case Kind.USERS:
            return {"tenantId": str(key.tenant), "generatedAt": _generated_at(builds, document)}
        case _:
            return {}


def _generated_at(builds: _Builds, document: Any) -> str:
    """Return the time in the document if it is plausible, else the time when the document was stored.

    A document is made after the builds of its days and before it is stored.
    """
    assert builds.built_at is not None  # noqa: S101  # a stored document
    shown = str(document["generatedAt"]) if isinstance(document, dict) and "generatedAt" in document else ""
    newest = Partition.objects.filter(build__in=[build for _, _, build in builds.partitions])
    earliest = max(newest.values_list("built_at", flat=True))
    # The time in the document has milliseconds.
    latest = builds.built_at + timedelta(milliseconds=1)
    try:
        is_possible = earliest <= parse_timestamp(shown) <= latest
    except ValueError:
        is_possible = False
    return shown if is_possible else format_timestamp(builds.built_at)


def _no_entry() -> NotFound:
    return NotFound("There is no log entry in this period.")
