"""Periods of documents as text: ``2026-03-01``, ``2026-03``, ``2026``, or empty for the whole history."""

from __future__ import annotations

import hashlib
from calendar import monthrange
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

HISTORY: Final = ""

#: Part of every digest. Raise it when the same days give different months or years.
MERGE_VERSION: Final = 3


@dataclass(frozen=True, slots=True)
class DayBuild:
    """The current build of a day's rollups.

    Attributes:
        files: table names to object keys.
        is_outdated: another version of the service made the files, and this one cannot merge them.
    """

    day: date
    build: str
    files: Mapping[str, str] = field(default_factory=dict)
    is_outdated: bool = False


def month_of(day: date) -> str:
    """Return the month of ``day``, such as ``2026-03``."""
    return day.isoformat()[: len("2026-03")]


def year_of(day: date) -> str:
    """Return the year of ``day``, such as ``2026``."""
    return day.isoformat()[: len("2026")]


def periods_of(days: Iterable[date]) -> list[str]:
    """Return the months of ``days``, then the years, then the history; nothing without days."""
    days = list(days)
    months = sorted({month_of(day) for day in days})
    years = sorted({year_of(day) for day in days})
    return [*months, *years, *([HISTORY] if days else [])]


def waiting_periods(builds: Iterable[DayBuild]) -> set[str]:
    """Return the periods with outdated days, which must be rolled up again first."""
    return periods_showing(item.day for item in builds if item.is_outdated)


def periods_showing(days: Iterable[date]) -> set[str]:
    """Return the periods whose documents show any of ``days``: months, years and the history.

    They include the year after a day, because its 365 days of activity may include the day.
    """
    days = list(days)
    return {*periods_of(days), *(f"{min(day.year + 1, date.max.year):04}" for day in days)}


def parts_of(period: str, days: Iterable[date]) -> list[str]:
    """Return, in order, the months of a year or the years of the history that contain any of ``days``."""
    own = [day for day in days if is_in_period(day, period)]
    return sorted({year_of(day) if period == HISTORY else month_of(day) for day in own})


def is_month(period: str) -> bool:
    """Return True if ``period`` is a month."""
    return len(period) == len("2026-03")


def is_year(period: str) -> bool:
    """Return True if ``period`` is a year."""
    return len(period) == len("2026")


def year_before(year: str) -> str:
    """Return the year before ``year``; for year 1, return year 1."""
    return f"{max(int(year) - 1, 1):04}"


def is_in_period(day: date, period: str) -> bool:
    """Return True if ``day`` is in ``period``."""
    return day.isoformat().startswith(period)


def merged_digest(period: str, builds: Iterable[DayBuild]) -> str:
    """Return a digest over the builds of the days in ``period``. ``builds`` are sorted by day."""
    digest = hashlib.sha256(f"merge {MERGE_VERSION}\n".encode())
    for item in builds:
        if is_in_period(item.day, period):
            digest.update(f"{item.day} {item.build}\n".encode())
    return digest.hexdigest()


def source_digest(period: str, builds: Sequence[DayBuild]) -> str:
    """Return a digest over the builds that the documents of ``period`` are computed from.

    The document of a year has 365 days of activity, which may begin in the year before. ``builds`` are sorted
    by day.
    """
    own = merged_digest(period, builds)
    if not is_year(period):
        return own
    before = merged_digest(year_before(period), builds)
    return hashlib.sha256(f"{before} {own}".encode()).hexdigest()


def period_bounds(period: str) -> tuple[date, date]:
    """Return the first and the last day of a period."""
    if period == HISTORY:
        return date.min, date.max
    if len(period) == len("2026-03-01"):
        return date.fromisoformat(period), date.fromisoformat(period)
    year, _, month = period.partition("-")
    if not month:
        return date(int(year), 1, 1), date(int(year), 12, 31)
    _, length = monthrange(int(year), int(month))
    return date(int(year), int(month), 1), date(int(year), int(month), length)
