"""Keys of a tenant's objects in the store. Contract: "Query log entry and ``proxy_logs``", "Raw logs".

Raw logs: ``<tenantId>/logs/YYYY/MM/DD/HH/<file>.json``. Compacted: ``<tenantId>/compacted/day=YYYY-MM-DD/``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final
from uuid import UUID

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS

#: What follows a day's prefix in the key of a raw log object.
HOUR_AND_FILE: Final = re.compile(r"(?P<hour>[01]\d|2[0-3])/(?P<file>[^/]+\.json)", re.ASCII | re.DOTALL)
#: What follows a day's prefix in the key of any object under an hour.
IN_HOUR: Final = re.compile(r"([01]\d|2[0-3])/.+", re.ASCII | re.DOTALL)
_RAW_KEY: Final = re.compile(
    rf"(?P<tenant>[0-9a-f-]{{36}})/logs/(?P<day>\d{{4}}/\d{{2}}/\d{{2}})/{HOUR_AND_FILE.pattern}",
    re.ASCII | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class RawKey:
    """The parts of a raw log object's key: the day and hour of its prefix (UTC) and its file name."""

    tenant: str
    day: date
    hour: int
    file: str


def parse_raw_key(key: str) -> RawKey | None:
    """Return the parts of a raw log object's key, or None if it is not such a key."""
    match = _RAW_KEY.fullmatch(key)
    if match is None:
        return None
    try:
        day = date.fromisoformat(match["day"].replace("/", "-"))
    except ValueError:
        return None
    return RawKey(match["tenant"], day, int(match["hour"]), match["file"])


def logs_prefix(tenant: UUID) -> str:
    """Return the prefix of all raw logs of a tenant."""
    return f"{tenant}/logs/"


def day_prefix(tenant: UUID, day: date) -> str:
    """Return the prefix of the raw logs of one day."""
    # `strftime` writes the year 999 with three digits.
    return f"{tenant}/logs/{day.isoformat().replace('-', '/')}/"


#: The place of the hour in the key of a raw log object. All day prefixes have the same length.
_HOUR_START: Final = len(day_prefix(UUID(int=0), date.min))
_HOUR_END: Final = _HOUR_START + 2


def hour_of(key: str) -> int:
    """Return the hour (0 to 23, UTC) of a raw log object's prefix. ``key`` must be one."""
    return int(key[_HOUR_START:_HOUR_END])


def hour_of_any(key: str) -> int:
    """Return the hour with which an object below a day is built: 0 if it lies in the folder of no hour."""
    return hour_of(key) if IN_HOUR.fullmatch(key, _HOUR_START) else 0


def compacted_prefix(tenant: UUID, day: date) -> str:
    """Return the prefix of a day's Parquet files. DuckDB reads the column ``day`` from it."""
    return f"{tenant}/compacted/day={day.isoformat()}/"


def parts_prefix(tenant: UUID, day: date) -> str:
    """Return the prefix of the files of a day that is built by hours. Queries read its spans' files."""
    return f"{tenant}/compacted/hours/day={day.isoformat()}/"


def rollup_prefix(tenant: UUID, day: date) -> str:
    """Return the prefix of a day's rollup files."""
    return f"{tenant}/rollups/day={day.isoformat()}/"


def partition_key(tenant: UUID, day: date, *, build: str) -> str:
    """Return the key of a day's Parquet file. Each build has a new key, so an open file never changes."""
    return f"{compacted_prefix(tenant, day)}{build}.parquet"


def rollup_key(tenant: UUID, day: date, *, build: str, table: str) -> str:
    """Return the key of one rollup table of a day."""
    return f"{rollup_prefix(tenant, day)}{build}.{table}.parquet"


def day_start_ms(day: date) -> int:
    """Return midnight UTC of ``day`` in epoch milliseconds."""
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000


def near(day: date) -> range:
    """Return the timestamps from two days before ``day`` to two days after it."""
    start = day_start_ms(day)
    return range(start - 2 * DAY_MS, start + 3 * DAY_MS)
