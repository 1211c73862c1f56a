"""The periods that documents cover, as text: ``2026-03-01``, ``2026-03``, ``2026``; empty for all history."""

from __future__ import annotations

import hashlib
from calendar import monthrange
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

HISTORY: Final = ""


#: Goes into every digest: raise it when the same days must give other months or years.
MERGE_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class DayBuild:
    """Which build of a day's rollups is current, and its files: table name to object key."""

    day: date
    build: str
    files: Mapping[str, str] = field(default_factory=dict)
    #: Whether the files are of another version of this service, which this one cannot merge.
    is_outdated: bool = False


def month_of(day: date) -> str:
    """``2026-03`` for any day of that month."""
    return day.isoformat()[: len("2026-03")]


def year_of(day: date) -> str:
    """``2026`` for any day of that year."""
    return day.isoformat()[: len("2026")]


def periods_of(days: Iterable[date]) -> list[str]:
    """The months, then the years, then the history that have any of ``days``; empty for no day."""
    held = list(days)
    months = sorted({month_of(day) for day in held})
    years = sorted({year_of(day) for day in held})
    return [*months, *years, *([HISTORY] if held else [])]


def waiting_periods(builds: Iterable[DayBuild]) -> set[str]:
    """The periods that cannot be computed before some outdated day is made anew.

    The year after such a day is one of them, for its activity reaches back.
    """
    days = [item.day for item in builds if item.is_outdated]
    return {*periods_of(days), *(f"{min(day.year + 1, date.max.year):04}" for day in days)}


def parts_of(period: str, days: Iterable[date]) -> list[str]:
    """The months of a year, or the years of the history, that have any of ``days``, in order."""
    own = [day for day in days if holds(period, day)]
    return sorted({year_of(day) if period == HISTORY else month_of(day) for day in own})


def is_year(period: str) -> bool:
    """Whether ``period`` is a year."""
    return len(period) == len("2026")


def year_before(year: str) -> str:
    """``2025`` for ``2026``; the first year has none, and stands for itself."""
    return f"{max(int(year) - 1, 1):04}"


def holds(period: str, day: date) -> bool:
    """Whether ``day`` lies in ``period``."""
    return day.isoformat().startswith(period)


def merged_digest(period: str, builds: Iterable[DayBuild]) -> str:
    """A digest over the builds of the days in ``period``, given in order of days."""
    digest = hashlib.sha256(f"merge {MERGE_VERSION}\n".encode())
    for item in builds:
        if holds(period, item.day):
            digest.update(f"{item.day} {item.build}\n".encode())
    return digest.hexdigest()


def source_digest(period: str, builds: Sequence[DayBuild]) -> str:
    """A digest over the builds that the documents of ``period`` are computed from, given in order of days.

    That of a year shows 365 days of activity, which may begin in the year before.
    """
    own = merged_digest(period, builds)
    if not is_year(period):
        return own
    before = merged_digest(year_before(period), builds)
    return hashlib.sha256(f"{before} {own}".encode()).hexdigest()


def period_bounds(period: str) -> tuple[date, date]:
    """First and last day of a period."""
    if period == HISTORY:
        return date.min, date.max
    if len(period) == len("2026-03-01"):
        return date.fromisoformat(period), date.fromisoformat(period)
    year, _, month = period.partition("-")
    if not month:
        return date(int(year), 1, 1), date(int(year), 12, 31)
    _, length = monthrange(int(year), int(month))
    return date(int(year), int(month), 1), date(int(year), int(month), length)
