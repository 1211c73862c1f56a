"""The periods that documents cover, as text: ``2026-03-01``, ``2026-03``, ``2026``; empty for all history."""

from __future__ import annotations

import hashlib
from calendar import monthrange
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

HISTORY: Final = ""


@dataclass(frozen=True, slots=True)
class DayBuild:
    """Which build of a day's rollups is current."""

    day: date
    build: str


def month_of(day: date) -> str:
    """``2026-03`` for any day of that month."""
    return f"{day:%Y-%m}"


def year_of(day: date) -> str:
    """``2026`` for any day of that year."""
    return f"{day:%Y}"


def periods_of(days: Iterable[date]) -> list[str]:
    """The months, then the years, then the history that have any of ``days``; empty for no day."""
    held = list(days)
    months = sorted({month_of(day) for day in held})
    years = sorted({year_of(day) for day in held})
    return [*months, *years, *([HISTORY] if held else [])]


def covers(period: str, day: date) -> bool:
    """Whether a document of ``period`` depends on ``day``.

    That of a year shows 365 days of activity, which may begin in the year before.
    """
    if len(period) == len("2026"):
        return day.year in {int(period), int(period) - 1}
    return day.isoformat().startswith(period)


def source_digest(period: str, builds: Iterable[DayBuild]) -> str:
    """A digest over the builds that a document of ``period`` is computed from, given in order of days."""
    digest = hashlib.sha256()
    for item in builds:
        if covers(period, item.day):
            digest.update(f"{item.day} {item.build}\n".encode())
    return digest.hexdigest()


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
