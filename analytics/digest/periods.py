"""The periods of digests (days and weeks), and the earlier periods that they are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Final, Literal, TypeAlias

from tenantadmin.lib.core.timestamps import days_before

DigestKind: TypeAlias = Literal["day", "week"]

#: A day is compared with this many same weekdays before it, a week with this many weeks before it.
EARLIER: Final = 4
#: A digest reads at most this many days before its first day.
LOOK_BACK_DAYS: Final = 7 * EARLIER
_WEEK_DAYS: Final = 7


@dataclass(frozen=True, slots=True)
class DigestPeriod:
    """A day, or a week from Monday to Sunday."""

    first: date
    last: date

    @classmethod
    def of_day(cls, day: date) -> DigestPeriod:
        return cls(day, day)

    @classmethod
    def of_week(cls, year: int, week: int) -> DigestPeriod:
        """Return an ISO week. The last one of the calendar ends with the calendar.

        Raises:
            ValueError: the year has no such week.
        """
        first = date.fromisocalendar(year, week, 1)
        return cls(first, date.fromordinal(min(first.toordinal() + _WEEK_DAYS - 1, date.max.toordinal())))

    @classmethod
    def with_day(cls, day: date) -> DigestPeriod:
        """Return the week of ``day``."""
        return cls.of_week(*day.isocalendar()[:2])

    @classmethod
    def named(cls, name: str) -> DigestPeriod:
        """Return the period with a name such as ``2026-03-01`` or ``2026-W09``.

        Raises:
            ValueError: there is no such period.
        """
        year, is_week, week = name.partition("-W")
        if is_week:
            if len(year) != len("2026") or len(week) != len("09"):
                raise ValueError(f"{name!r} is not a week; write it like 2026-W09")
            return cls.of_week(int(year), int(week))
        return cls.of_day(date.fromisoformat(name))

    @property
    def is_week(self) -> bool:
        return self.first != self.last

    @property
    def kind(self) -> DigestKind:
        return "week" if self.is_week else "day"

    @property
    def name(self) -> str:
        if not self.is_week:
            return self.first.isoformat()
        year, week, _ = self.first.isocalendar()
        return f"{year:04}-W{week:02}"

    @property
    def sql(self) -> str:
        """The SQL condition for entries of the period."""
        return f"day BETWEEN '{self.first}' AND '{self.last}'" if self.is_week else f"day = '{self.first}'"

    @property
    def earlier_sql(self) -> str:
        """The SQL condition for entries of the earlier periods that this one is compared with."""
        if self.is_week:
            return self.before_sql(LOOK_BACK_DAYS)
        days = [days_before(self.first, _WEEK_DAYS * number) for number in range(1, EARLIER + 1)]
        return "day IN (" + ", ".join(f"'{day}'" for day in days) + ")"

    @property
    def grouping_sql(self) -> str:
        """The SQL expression that groups the earlier days into periods of the same kind."""
        return "date_trunc('week', day::DATE)" if self.is_week else "day"

    def before_sql(self, days: int, *, until: int = 1) -> str:
        """Return the SQL condition for entries ``days`` to ``until`` days before the first day."""
        return f"day BETWEEN '{days_before(self.first, days)}' AND '{days_before(self.first, until)}'"
