"""What the month of the newest day of a log will bill and save, if its days go on as they were."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import dropwhile
from typing import TYPE_CHECKING, Final
from uuid import UUID

from accounts.tenants.pricing import Pricing
from analytics.reports.savings import (
    BUILDING,
    WITH_CACHE,
    WITHOUT,
    Measured,
    SavingsTotal,
    find_source,
    read_kept,
    total_figures,
)
from analytics.reports.savings_sql import bill_days, days_between
from tenantadmin.lib.core.errors import ServiceBusy
from tenantadmin.lib.core.timestamps import days_before

if TYPE_CHECKING:
    from analytics.reports.savings import SavingsSource, Scope
    from analytics.reports.savings_sql import Bill
    from tenantadmin.lib.objectstore import ObjectStore

#: A forecast takes the days to come for the mean of so many days before the newest; of at least so many.
FORECAST_DAYS: Final = 28
MIN_FORECAST_DAYS: Final = 7


@dataclass(frozen=True, slots=True)
class MonthForecast:
    """A month (UTC): up to its newest day, and all of it."""

    so_far: SavingsTotal
    whole: SavingsTotal


def find_forecast_source(*, tenant: UUID, last: date) -> SavingsSource:
    """Return what the forecast of the month of ``last``, the newest day, depends on."""
    first = min(last.replace(day=1), days_before(last, FORECAST_DAYS))
    return find_source(tenant=tenant, first=first, last=last, step="day")


def forecast_month(store: ObjectStore, source: SavingsSource) -> MonthForecast | None:
    """Return the month of the last day of a source of `find_forecast_source`; None if it has too few days.

    Each day to come has the mean of the `FORECAST_DAYS` before the newest one, which counts as such a day
    too until it has as much. It is billed by the prices in force on it.

    Raises:
        ServiceBusy: a day of an earlier release is still to build.
        BadRequest, StoreError, duckdb.IOException: as `read_kept`.
    """
    if source.kept is None:
        raise ServiceBusy(BUILDING)
    last = source.last
    with_data = {day for day, *_ in source.partitions}
    before = days_between(days_before(last, FORECAST_DAYS), days_before(last, 1))
    usual = list(dropwhile(lambda day: day not in with_data, before))
    if len(usual) < MIN_FORECAST_DAYS:
        return None
    measured, pricing = Measured(read_kept(store, source, source.kept)), Pricing.of(source.prices)
    so_far = days_between(last.replace(day=1), last)
    whole = days_between(last.replace(day=1), last.replace(day=monthrange(last.year, last.month)[1]))

    def bill(scope: Scope, days: Sequence[date], to_come: Sequence[date]) -> Bill:
        awake, busy = (
            {**times[scope], **_mean(times[scope], of=usual, on=to_come, pricing=pricing)}
            for times in (measured.awake, measured.busy)
        )
        return bill_days(days, pricing, awake=awake, busy=busy)

    def total(days: Sequence[date], to_come: Sequence[date]) -> SavingsTotal:
        executed, all_requests = (bill(scope, days, to_come) for scope in (WITH_CACHE, WITHOUT))
        return SavingsTotal(**total_figures(executed, all_requests, days=days, pricing=pricing))

    is_short = bill(WITH_CACHE, [last], []).ms < bill(WITH_CACHE, [last], [last]).ms
    to_come = [day for day in whole if day > last or (day == last and is_short)]
    return MonthForecast(so_far=total(so_far, []), whole=total(whole, to_come))


def _mean(
    times: Mapping[tuple[str | None, date], int],
    *,
    of: Sequence[date],
    on: Sequence[date],
    pricing: Pricing,
) -> Mapping[tuple[str | None, date], int]:
    """Return the mean of some days, by host, on other days."""
    means = {host: sum(times.get((host, day), 0) for day in of) // len(of) for host in pricing.each()}
    return {(host, day): mean for host, mean in means.items() for day in on}
