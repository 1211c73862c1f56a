"""Times of a digest, for people to read."""

from __future__ import annotations

import datetime as dt
from typing import Final

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def format_minute(milliseconds: int) -> str:
    """Return a time (epoch ms) to the minute, in UTC."""
    return f"{_EPOCH + dt.timedelta(milliseconds=milliseconds):%Y-%m-%d %H:%M} UTC"


def to_milliseconds(moment: dt.datetime) -> int:
    """Return a time as epoch ms."""
    return (moment - _EPOCH) // dt.timedelta(milliseconds=1)


def day_of(milliseconds: int) -> dt.date:
    """Return the day (UTC) of a time (epoch ms)."""
    return (_EPOCH + dt.timedelta(milliseconds=milliseconds)).date()
