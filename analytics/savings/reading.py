"""Read the savings of a window: the kept document, or a new one. Contract: docs/savings.md."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import duckdb
from django.conf import settings

from accounts.tenants.config import read_prices
from accounts.tenants.pricing import Pricing
from analytics.savings.bill import days_between
from analytics.savings.document import Savings, SavingsWindow, savings_document
from analytics.savings.sql import SAVINGS_SQL, fill_savings
from analytics.summaries.document_cache import cache_document, forget_document, get_cached
from logs.partitions import describe_longest_window, partitions_with_file
from logs.queries import document_limits, rows_of, run_query
from logs.sources import local_copies
from logs.sql.protocol import EngineUnavailable
from logs.sql.source import make_source
from tenantadmin.lib.core.errors import BadRequest, Detail, ServiceBusy
from tenantadmin.lib.core.rendering import dump_json, strong_etag
from tenantadmin.lib.core.timestamps import days_before
from tenantadmin.lib.objectstore import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date
    from uuid import UUID

    from logs.audit import Reader
    from tenantadmin.lib.objectstore import ObjectStore

#: Savings cover at most this many days.
MAX_DAYS: Final = 366
Step: TypeAlias = Literal["day", "month"]
STEPS: Final[tuple[Step, ...]] = get_args(Step)
#: Raise it when the document changes, so that documents that were kept before are not served.
_VERSION: Final = 5
_ATTEMPTS: Final = 2


@dataclass(frozen=True, slots=True)
class SavingsSource:
    """Everything that the savings of a window depend on, read at one moment.

    Attributes:
        prices: ``warehouse.pricing`` of the tenant's configuration.
        partitions: day, build, object keys and number of rows of each day that is read.
    """

    tenant: UUID
    first: date
    last: date
    step: Step
    prices: Sequence[Mapping[str, Any]]
    partitions: Sequence[tuple[date, str, Sequence[str], int]] = ()

    @property
    def before(self) -> date:
        """The day before the window. A session that is under way at midnight counts."""
        return days_before(self.first, 1)

    @property
    def etag(self) -> str:
        builds = [(day.isoformat(), build) for day, build, *_ in self.partitions]
        parts = (_VERSION, self.tenant, self.first, self.last, self.step)
        return strong_etag(*parts, json.dumps([self.prices, builds], sort_keys=True))

    @property
    def cache_key(self) -> str:
        return f"savings:{self.etag}"


def find_source(*, tenant: UUID, first: date, last: date, step: Step) -> SavingsSource:
    """Return what the savings of the days from ``first`` to ``last`` depend on, in two queries.

    Raises:
        BadRequest: there are too many days or log entries, or no days.
    """
    days = (last - first).days + 1
    if days < 1:
        raise _refuse("'from' is later than 'to'.")
    if days > MAX_DAYS:
        raise _refuse(f"Savings cover at most {MAX_DAYS} days, and these are {days}.")
    source = SavingsSource(tenant, first, last, step, read_prices(tenant))
    rows = partitions_with_file(tenant=tenant).filter(day__range=(source.before, last)).defer("hours")
    partitions = [(row.day, row.build, tuple(row.files), row.rows) for row in rows]
    entries = sum(count for *_, count in partitions)
    if entries > settings.REPLAY_MAX_ROWS:
        raise _refuse(
            f"These days have {entries} log entries; at most {settings.REPLAY_MAX_ROWS} can be read. "
            + describe_longest_window(
                {day: count for day, *_, count in partitions},
                last=last,
                before=1,
                most=settings.REPLAY_MAX_ROWS,
            )
        )
    return replace(source, partitions=partitions)


def read_savings(store: ObjectStore, source: SavingsSource, *, reader: Reader) -> tuple[str, bytes]:
    """Return the entity tag and the document: the kept one, or a new one, which is kept for an hour.

    If a build replaces the days meanwhile, the document is of the new ones.

    Raises:
        BadRequest: the new days have too many log entries.
        ServiceBusy: days were built again in both attempts.
        ApiError: the query failed.
    """
    for _ in range(_ATTEMPTS):
        kept = get_cached(source.cache_key)
        if kept is not None:
            return source.etag, kept
        try:
            body = dump_json(compute_savings(store, source, reader=reader))
        except (EngineUnavailable, StoreError, duckdb.IOException):
            # A file may be missing because it was replaced.
            before, source = source, find_again(source)
            if source == before:
                raise
        else:
            cache_document(source.cache_key, body)
            return source.etag, body
    raise ServiceBusy("Days of the log are being built again. Try again in a moment.")


def find_again(source: SavingsSource) -> SavingsSource:
    """Return what the same savings depend on now."""
    return find_source(tenant=source.tenant, first=source.first, last=source.last, step=source.step)


def forget(source: SavingsSource) -> None:
    """Delete the kept document."""
    forget_document(source.cache_key)


def compute_savings(store: ObjectStore, source: SavingsSource, *, reader: Reader) -> Savings:
    """Compute the savings with the published query. The query is audited under the name of ``reader``.

    Raises:
        ApiError: the query failed, or its result has too many rules.
        EngineUnavailable, StoreError, duckdb.IOException: a file could not be read.
    """
    pricing = Pricing.of(source.prices)
    sql = fill_savings(
        SAVINGS_SQL.strip(), first=source.first, before=source.before, last=source.last, pricing=pricing
    )
    files = make_source(
        store,
        copies=local_copies(),
        tenant=str(source.tenant),
        files=[(day.isoformat(), key) for day, _, keys, _ in source.partitions for key in keys],
    )
    result = run_query(
        store,
        tenant=source.tenant,
        statement=sql,
        reader=reader,
        source=files,
        limits=document_limits(),
        by_service=True,
    )
    if result.truncated:
        raise _refuse("These days have too many rules. Choose fewer days.")
    days = {day for day, *_ in source.partitions}
    window = days_between(source.first, source.last)
    return savings_document(
        rows_of(result),
        window=SavingsWindow(
            from_=source.first, to=source.last, days_without_data=[day for day in window if day not in days]
        ),
        step=source.step,
        pricing=pricing,
        prices=source.prices,
        sql=sql,
    )


def _refuse(message: str) -> BadRequest:
    return BadRequest(message, details=[Detail("/from", "out-of-range", message)])
