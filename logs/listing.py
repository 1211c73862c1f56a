"""What lies under a day's prefix, and whether that is what was last compacted. Reads no object."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final
from uuid import UUID

import msgspec

from logs.layout import HOUR_AND_FILE, day_prefix, logs_prefix

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tenantadmin.objectstore import ObjectStore

#: Goes into every digest: raise it when the same objects must give other rows, and every day is rebuilt.
LAYOUT_VERSION: Final = 2

_DIGITS = re.compile(r"\d+", re.ASCII)


class RawObject(msgspec.Struct, frozen=True, gc=False):
    """One raw log object of a day: its key, the hour of its prefix (0 to 23) and its size in bytes."""

    key: str
    hour: int
    size: int


@dataclass(frozen=True, slots=True)
class HourObjects:
    """The raw objects under one hour's prefix: a digest over names, sizes and etags, and their bytes."""

    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class DayListing:
    """The raw log objects of a day in key order; the hours that have some; a digest over all of them."""

    tenant: UUID
    day: date
    objects: tuple[RawObject, ...]
    hours: Mapping[int, HourObjects]
    digest: str

    @property
    def size(self) -> int:
        """Bytes of all objects."""
        return sum(hour.size for hour in self.hours.values())


def list_day(store: ObjectStore, *, tenant: UUID, day: date) -> DayListing:
    """List the raw objects of one day. Names that are not ``HH/<file>.json`` are no log objects."""
    prefix = day_prefix(tenant, day)
    start, end = len(prefix), len(prefix) + len("HH/")
    listed = sorted(store.list(prefix), key=attrgetter("key"))
    objects: list[RawObject] = []
    hours: dict[int, HourObjects] = {}
    for folder, entries in groupby(listed, key=lambda entry: entry.key[start:end]):
        found = [entry for entry in entries if HOUR_AND_FILE.fullmatch(entry.key, start)]
        if found:
            hour = int(folder[:-1])
            objects += [RawObject(entry.key, hour, entry.size) for entry in found]
            described = "".join([f"{entry.key}\0{entry.size}\0{entry.etag}\0" for entry in found])
            digest = hashlib.sha256(f"layout {LAYOUT_VERSION}\n{described}".encode())
            hours[hour] = HourObjects(digest.hexdigest(), sum(entry.size for entry in found))
    together = "".join(f"{hour} {found.digest}\n" for hour, found in hours.items())
    whole = hashlib.sha256(f"layout {LAYOUT_VERSION}\n{together}".encode())
    return DayListing(tenant, day, tuple(objects), hours, whole.hexdigest())


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
