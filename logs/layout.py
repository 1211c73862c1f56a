"""Keys of a tenant's objects in the store, and lists of its raw logs. Contract: Query log entry, Raw logs.

Raw logs: ``<tenantId>/logs/YYYY/MM/DD/HH/<file>.json``. Compacted: ``<tenantId>/compacted/day=YYYY-MM-DD/``.
Digests show whether raw logs changed since they were compacted.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Final
from uuid import UUID

if TYPE_CHECKING:
    from tenantadmin.lib.objectstore import Entry, ObjectStore

#: Part of every digest. Raise it if the same objects must give other rows: then every day is rebuilt.
LAYOUT_VERSION: Final = 5

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
_DIGITS: Final = re.compile(r"\d+", re.ASCII)
_key: Final = attrgetter("key")


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


@dataclass(frozen=True, slots=True)
class HourObjects:
    """The raw objects under one hour's prefix in key order, and their total bytes.

    ``others`` are the keys of objects that are not read, because of their names. Hour 0 also has those in the
    folder of no hour. ``digest`` covers all.
    """

    entries: tuple[Entry, ...]
    digest: str
    size: int
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DayListing:
    """The raw objects of a day by hour (0 to 23, in order, without empty hours), and a digest over all."""

    tenant: UUID
    day: date
    hours: Mapping[int, HourObjects]
    digest: str

    @property
    def entries(self) -> list[Entry]:
        """All objects, in key order."""
        return list(chain.from_iterable(hour.entries for hour in self.hours.values()))

    @property
    def count(self) -> int:
        """The number of objects."""
        return sum(len(hour.entries) for hour in self.hours.values())

    @property
    def size(self) -> int:
        """The bytes of all objects."""
        return sum(hour.size for hour in self.hours.values())


def list_day(store: ObjectStore, *, tenant: UUID, day: date, hour: int | None = None) -> DayListing:
    """List the objects of one day, or of one hour of it. The names of raw objects are ``HH/<file>.json``."""
    start = day_prefix(tenant, day)
    objects = store.list(start if hour is None else f"{start}{hour:02}/")
    own, strays = [], []
    for entry in objects:
        if IN_HOUR.fullmatch(entry.key, len(start)):
            own.append(entry)
        else:
            strays.append(entry.key)
    if hour == 0:
        strays = _strays(store, start)
    return describe_day(sorted(own, key=_key), tenant=tenant, day=day, strays=sorted(strays))


def _strays(store: ObjectStore, start: str) -> list[str]:
    """Return the keys below a day's prefix that lie in the folder of no hour. Lists no hour."""
    folders, files = store.listdir(start)
    strays = [f"{start}{name}" for name in files]
    for folder in folders:
        if not IN_HOUR.fullmatch(f"{folder}/x"):
            strays += [entry.key for entry in store.list(f"{start}{folder}/")]
    return strays


def describe_day(
    objects: Sequence[Entry], *, tenant: UUID, day: date, strays: Sequence[str] = ()
) -> DayListing:
    """Make the listing of one day.

    Args:
        objects: those under the day's hours, in key order.
        strays: the keys of objects of the day in the folder of no hour, in order.
    """
    start = len(day_prefix(tenant, day))
    hours: dict[int, HourObjects] = {}
    if strays and (not objects or hour_of(objects[0].key) > 0):
        hours[0] = _describe_hour((), start, strays)
    first = 0
    while first < len(objects):
        hour = hour_of(objects[first].key)
        # "0" is the character after "/", so this key sorts behind all keys of the hour.
        end = bisect_left(objects, f"{day_prefix(tenant, day)}{hour:02}0", lo=first, key=_key)
        hours[hour] = _describe_hour(tuple(objects[first:end]), start, () if hour else strays)
        first = end
    return DayListing(tenant, day, hours, day_digest({hour: own.digest for hour, own in hours.items()}))


def _describe_hour(objects: tuple[Entry, ...], start: int, strays: Sequence[str]) -> HourObjects:
    entries = tuple(entry for entry in objects if HOUR_AND_FILE.fullmatch(entry.key, start))
    others = list(strays)
    if len(entries) < len(objects):
        others += [entry.key for entry in objects if not HOUR_AND_FILE.fullmatch(entry.key, start)]
    described = [f"{entry.key}\0{entry.size}\0{entry.etag}\0" for entry in objects]
    described += [f"{key}\0" for key in strays]
    digest = hashlib.sha256(f"layout {LAYOUT_VERSION}\n{''.join(described)}".encode()).hexdigest()
    return HourObjects(entries, digest, sum(entry.size for entry in entries), tuple(others))


def mark_as_changed(listing: DayListing, hours: Collection[int]) -> DayListing:
    """Return ``listing`` with digests of ``hours`` and of the day that match no real listing."""
    if not hours:
        return listing
    marked = {
        hour: replace(objects, digest="") if hour in hours else objects
        for hour, objects in listing.hours.items()
    }
    digests = {hour: objects.digest for hour, objects in marked.items()}
    return replace(listing, hours=marked, digest=day_digest(digests))


def day_digest(hours: Mapping[int, str]) -> str:
    """Return the digest of a day from the digests of its hours."""
    described = "".join(f"{hour} {digest}\n" for hour, digest in hours.items())
    return hashlib.sha256(f"layout {LAYOUT_VERSION}\n{described}".encode()).hexdigest()


def find_tenants(store: ObjectStore) -> list[UUID]:
    """Return the tenants that have any object in the store, in order."""
    folders, _ = store.listdir("")
    return sorted(UUID(name) for name in folders if is_canonical_uuid(name))


def find_days(
    store: ObjectStore, *, tenant: UUID, first: date | None = None, last: date | None = None
) -> list[date]:
    """Return the days from ``first`` to ``last`` that have a prefix under the tenant's raw logs, in order."""
    low, high = first or date.min, last or date.max
    days: list[date] = []
    root = logs_prefix(tenant)
    for year in _child_numbers(store, root, width=4):
        if not low.year <= int(year) <= high.year:
            continue
        for month in _child_numbers(store, f"{root}{year}/", width=2):
            if not (low.year, low.month) <= (int(year), int(month)) <= (high.year, high.month):
                continue
            for number in _child_numbers(store, f"{root}{year}/{month}/", width=2):
                try:
                    day = date(int(year), int(month), int(number))
                except ValueError:
                    continue
                if low <= day <= high:
                    days.append(day)
    return days


def _child_numbers(store: ObjectStore, prefix: str, *, width: int) -> list[str]:
    """Return the child prefixes that are numbers of ``width`` digits, in order."""
    folders, _ = store.listdir(prefix)
    return sorted(name for name in folders if len(name) == width and _DIGITS.fullmatch(name))


def is_canonical_uuid(text: str) -> bool:
    """Return True if ``text`` is a UUID as the folders of tenants are named."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
