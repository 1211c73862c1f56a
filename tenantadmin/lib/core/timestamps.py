"""Timestamps of the API: ISO 8601, UTC, milliseconds, ``Z``."""

from __future__ import annotations

import datetime as dt
import re
from typing import NewType

#: A date-time as the API writes it: ``2026-11-21T02:45:07.123Z``.
Timestamp = NewType("Timestamp", str)

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?([Zz]|[+-]\d{2}:?\d{2})")


def now() -> dt.datetime:
    """Return the current time in UTC, truncated to the milliseconds that the API shows."""
    moment = dt.datetime.now(dt.UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def from_epoch_ms(milliseconds: int) -> dt.datetime:
    """Return the time of a log entry, which is in milliseconds since 1970, as a moment in UTC."""
    return _EPOCH + dt.timedelta(milliseconds=milliseconds)


def time_of(timestamp: int | None) -> dt.datetime | None:
    """Return a timestamp of the log (epoch ms); None if it is null or outside of the years 1 to 9999."""
    if timestamp is None:
        return None
    try:
        return from_epoch_ms(timestamp)
    except OverflowError:
        return None


def epoch_ms(moment: dt.datetime) -> int:
    """Return an aware ``moment`` in milliseconds since 1970, rounded down."""
    return (moment - _EPOCH) // dt.timedelta(milliseconds=1)


def days_before(day: dt.date, days: int) -> dt.date:
    """Return the day ``days`` before ``day``, or the first day of the calendar."""
    return dt.date.fromordinal(max(day.toordinal() - days, 1))


def end_of_day(day: dt.date) -> dt.datetime:
    """Return the last moment of a day in UTC. The calendar has no midnight after its last day."""
    return dt.datetime.combine(day, dt.time.max, dt.UTC)


def format_timestamp(moment: dt.datetime) -> Timestamp:
    """Return an aware ``moment`` as ``2026-11-21T02:45:07.123Z``."""
    # strftime would write years before 1000 with fewer than four digits.
    return Timestamp(moment.astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z")


def show_time(timestamp: int | None) -> Timestamp | None:
    """Return a timestamp of the log as the API shows it; None if no date holds it."""
    moment = time_of(timestamp)
    return None if moment is None else format_timestamp(moment)


def parse_timestamp(text: str) -> dt.datetime:
    """Parse a date-time with a time zone.

    Raises:
        ValueError: not ISO 8601, no such date, or no zone. The message says how to write it.
    """
    if not _ISO.fullmatch(text):
        raise ValueError("Give a date-time with its zone, like 2026-11-21T02:45:07.123Z.")
    try:
        return dt.datetime.fromisoformat(text.upper().replace(",", ".")).astimezone(dt.UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"There is no such date and time ({error}).") from error


def later_than(moment: dt.datetime) -> dt.datetime:
    """Return the current time, but at least a millisecond after ``moment``."""
    return max(now(), moment + dt.timedelta(milliseconds=1))
