"""What days bill, from the times awake and busy. Contract: docs/savings.md."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from logs.layout import DAY_MS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date

    from accounts.tenants.pricing import Pricing


@dataclass(frozen=True, slots=True)
class Bill:
    """Milliseconds by day: what is billed, and how long statements ran."""

    billed: Mapping[date, int]
    busy: Mapping[date, int]

    def __sub__(self, other: Bill) -> Bill:
        return Bill(
            {day: ms - other.billed[day] for day, ms in self.billed.items()},
            {day: ms - other.busy[day] for day, ms in self.busy.items()},
        )

    @property
    def ms(self) -> int:
        """The time that all days bill."""
        return sum(self.billed.values())

    def amount(self, days: Iterable[date], pricing: Pricing) -> int | None:
        """Return what the days cost, for `Pricing.money`; None if none of them has a price."""
        amounts = [
            self.billed[day] * per_hour for day in days if (per_hour := pricing.on(day).per_hour) is not None
        ]
        return sum(amounts) if amounts else None


def bill_days(
    days: Iterable[date], pricing: Pricing, *, awake: Mapping[date, int], busy: Mapping[date, int]
) -> Bill:
    """Return what each day bills: the time awake, the time busy, or the whole day."""
    billed = {}
    for day in days:
        match pricing.on(day).billing:
            case "suspending":
                billed[day] = awake.get(day, 0)
            case "busy":
                billed[day] = busy.get(day, 0)
            case "always-on":
                billed[day] = DAY_MS
    return Bill(billed, {day: busy.get(day, 0) for day in billed})


def days_between(first: date, last: date) -> Sequence[date]:
    """Return the days of a window, both included."""
    return [first + timedelta(number) for number in range((last - first).days + 1)]
