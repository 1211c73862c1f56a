"""Read the log for a report, with audited queries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Annotated, Any, Final, Self
from uuid import UUID

from django.db.models import Sum
from msgspec import Meta

from logs.layout import DAY_MS, day_start_ms
from logs.models import Partition
from logs.queries import query_rows
from tenantadmin.lib.core.errors import BadRequest, Detail
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import days_before, epoch_ms, format_timestamp, from_epoch_ms

if TYPE_CHECKING:
    from logs.audit import Reader
    from tenantadmin.lib.objectstore import ObjectStore

#: A report covers at most this many days.
MAX_DAYS: Final = 31


@dataclass(frozen=True, slots=True)
class Window:
    """The days of a report, both included.

    Raises:
        BadRequest: the window ends before it begins, or is too long.
    """

    first: date
    last: date

    def __post_init__(self) -> None:
        days = (self.last - self.first).days + 1
        if days < 1:
            message = "'from' is later than 'to'."
        elif days > MAX_DAYS:
            message = f"A report covers at most {MAX_DAYS} days, and these are {days}."
        else:
            return
        raise bad_window(message)


def bad_window(message: str) -> BadRequest:
    """Return the error for days that cannot be read."""
    return BadRequest(message, details=[Detail("/from", "out-of-range", message)])


@dataclass(frozen=True, slots=True)
class Span:
    """Entries of the log from one moment to another.

    Attributes:
        days: the days that hold the entries.
        begins: the first time (epoch ms), or None for all of the first day.
        ends: the time (epoch ms) after the last one, or None for all of the last day.
    """

    days: Window
    begins: int | None = None
    ends: int | None = None

    @classmethod
    def between(cls, first: date | datetime | None, last: date | datetime) -> Self:
        """Return the span from ``first``, by default six days before ``last``. A day is included as a whole.

        Of date-times, which have a zone, ``first`` is included and ``last`` is not.

        Raises:
            BadRequest: it ends before it begins, or is too long.
        """
        last_day, ends = _day_and_time(last)
        if ends is not None and last.time() == time():  # type: ignore[union-attr]
            last_day = days_before(last_day, 1)
        first_day, begins = (days_before(last_day, 6), None) if first is None else _day_and_time(first)
        if begins is not None and ends is not None and begins >= ends:
            raise bad_window("'from' is not before 'to'.")
        return cls(Window(first_day, last_day), begins, ends)

    @property
    def bounds(self) -> tuple[int, int]:
        """The first time, and the time after the last one, in epoch ms."""
        first, last = day_start_ms(self.days.first), day_start_ms(self.days.last) + DAY_MS
        return first if self.begins is None else self.begins, last if self.ends is None else self.ends

    def conditions(self) -> list[str]:
        """Return the SQL conditions."""
        found = [f"day BETWEEN '{self.days.first}' AND '{self.days.last}'"]
        if self.begins is not None:
            found.append(f"timestamp >= {self.begins}")
        if self.ends is not None:
            found.append(f"timestamp < {self.ends}")
        return found

    def __str__(self) -> str:
        first, last = self.days.first.isoformat(), self.days.last.isoformat()
        if self.begins is not None:
            first = format_timestamp(from_epoch_ms(self.begins))
        if self.ends is not None:
            last = format_timestamp(from_epoch_ms(self.ends))
        return f"{first} to {last}"


def _day_and_time(moment: date | datetime) -> tuple[date, int | None]:
    """Return the day (UTC), and the time (epoch ms) if it is given."""
    if isinstance(moment, datetime):
        return moment.date(), epoch_ms(moment)
    return moment, None


class ReportQuery(JsonStruct):
    name: str
    sql: Annotated[str, Meta(description="The statement that gave the numbers, to run yourself.")]


class ReportHead(JsonStruct):
    from_: date
    to: date
    queries: list[ReportQuery]


@dataclass(frozen=True, slots=True)
class LogReader:
    """Reads a tenant's log for a caller. Each query is audited before it runs."""

    store: ObjectStore
    tenant: UUID
    reader: Reader

    def count_rows(self, window: Window) -> int:
        """Return how many entries the log has on the days of the window."""
        days = Partition.objects.filter(tenant_id=self.tenant, day__range=(window.first, window.last))
        count: int = days.aggregate(Sum("rows", default=0))["rows__sum"]
        return count

    def rows(self, statement: str) -> list[dict[str, Any]]:
        """Return the rows of a statement over ``proxy_logs``.

        Raises:
            ApiError: the query failed.
        """
        return query_rows(self.store, tenant=self.tenant, statement=statement, reader=self.reader)
