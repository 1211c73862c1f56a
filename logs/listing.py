"""What lies under a day's prefix, and whether that is what was last compacted."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Final
from uuid import UUID

from logs.layout import HOUR_AND_FILE, day_prefix, hour_of, logs_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from tenantadmin.objectstore import Batch, Entry, ObjectStore

#: Goes into every digest: raise it when the same objects must give other rows, and every day is rebuilt.
LAYOUT_VERSION: Final = 2

_key = attrgetter("key")
_DIGITS = re.compile(r"\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class HourObjects:
    """The raw objects under one hour's prefix in key order, a digest over them, and their bytes in all."""

    entries: tuple[Entry, ...]
    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class DayListing:
    """The raw log objects of a day: the hours (0 to 23) that have some, in order; a digest over all."""

    tenant: UUID
    day: date
    hours: Mapping[int, HourObjects]
    digest: str

    @property
    def entries(self) -> list[Entry]:
        """All of them, in key order."""
        return list(chain.from_iterable(hour.entries for hour in self.hours.values()))

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(len(hour.entries) for hour in self.hours.values())

    @property
    def size(self) -> int:
        """Bytes of all objects."""
        return sum(hour.size for hour in self.hours.values())


@dataclass(frozen=True, slots=True)
class UnlistedDay:
    """A day whose objects are to be read anyway: reading lists them as well, in less time than doing both."""

    tenant: UUID
    day: date


def list_day(store: ObjectStore, *, tenant: UUID, day: date) -> DayListing:
    """List the raw objects of one day. Names that are not ``HH/<file>.json`` are no log objects."""
    is_raw = _is_raw(tenant, day)
    found = [entry for entry in store.list(day_prefix(tenant, day)) if is_raw(entry.key)]
    return describe_day(sorted(found, key=_key), tenant=tenant, day=day)


def read_day(store: ObjectStore, *, tenant: UUID, day: date, found: list[Entry]) -> Iterator[Batch]:
    """The raw objects of one day in key order; what `describe_day` takes goes to ``found``."""
    for batch in store.read_all(day_prefix(tenant, day), _is_raw(tenant, day)):
        found += batch.entries
        yield batch


def has_objects(store: ObjectStore, *, tenant: UUID, day: date) -> bool:
    """Whether the day has any raw object."""
    is_raw = _is_raw(tenant, day)
    return any(is_raw(entry.key) for entry in store.list(day_prefix(tenant, day)))


def describe_day(found: Sequence[Entry], *, tenant: UUID, day: date) -> DayListing:
    """The listing of one day, of its raw objects in key order."""
    hours: dict[int, HourObjects] = {}
    at = 0
    while at < len(found):
        hour = hour_of(found[at].key)
        # What follows an hour's slash in the order of characters is behind all of its keys.
        end = bisect_left(found, f"{day_prefix(tenant, day)}{hour:02}0", lo=at, key=_key)
        own = tuple(found[at:end])
        described = "".join([f"{entry.key}\0{entry.size}\0{entry.etag}\0" for entry in own])
        digest = hashlib.sha256(f"layout {LAYOUT_VERSION}\n{described}".encode())
        hours[hour] = HourObjects(own, digest.hexdigest(), sum(entry.size for entry in own))
        at = end
    return DayListing(tenant, day, hours, _digest_of(hours))


def with_unsettled(listing: DayListing, hours: Collection[int]) -> DayListing:
    """``listing`` with digests that no listing has: its day, and of that ``hours``, will be found changed."""
    if not hours:
        return listing
    found = {
        hour: replace(objects, digest="") if hour in hours else objects
        for hour, objects in listing.hours.items()
    }
    return replace(listing, hours=found, digest=_digest_of(found))


def _digest_of(hours: Mapping[int, HourObjects]) -> str:
    together = "".join(f"{hour} {found.digest}\n" for hour, found in hours.items())
    return hashlib.sha256(f"layout {LAYOUT_VERSION}\n{together}".encode()).hexdigest()


def _is_raw(tenant: UUID, day: date) -> Callable[[str], object]:
    """Whether a key under the day's prefix is a raw object's."""
    start = len(day_prefix(tenant, day))
    return lambda key: HOUR_AND_FILE.fullmatch(key, start)


def find_tenants(store: ObjectStore) -> list[UUID]:
    """The tenants that have anything in the store, in order."""
    return sorted(
        UUID(child.name)
        for child in store.children("")
        if not child.is_object and _is_canonical_uuid(child.name)
    )


def find_days(
    store: ObjectStore, *, tenant: UUID, first: date | None = None, last: date | None = None
) -> list[date]:
    """The days that have a prefix under the tenant's raw logs, oldest first, within ``first`` to ``last``."""
    low, high = first or date.min, last or date.max
    days: list[date] = []
    root = logs_prefix(tenant)
    for year in _numbers(store, root, width=4):
        if not low.year <= int(year) <= high.year:
            continue
        for month in _numbers(store, f"{root}{year}/", width=2):
            if not (low.year, low.month) <= (int(year), int(month)) <= (high.year, high.month):
                continue
            for number in _numbers(store, f"{root}{year}/{month}/", width=2):
                try:
                    day = date(int(year), int(month), int(number))
                except ValueError:
                    continue
                if low <= day <= high:
                    days.append(day)
    return days


def _numbers(store: ObjectStore, prefix: str, *, width: int) -> Iterator[str]:
    names = (child.name for child in store.children(prefix) if not child.is_object)
    yield from sorted(name for name in names if len(name) == width and _DIGITS.fullmatch(name))


def _is_canonical_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
