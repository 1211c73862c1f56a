"""Many small objects to a few NDJSON files that the engine reads at full speed.

Each line is an entry with two fields in front: `_ordinal`, which grows with the object's name and the
position in it, and `_hour`, the hour of the object's prefix. Beside it stand the `logId`s with their
ordinals, in a narrow file, so that finding the repeated ones costs no pass over the wide lines.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from logs.compaction.entries import Accepted, canonical, read_entries
from tenantadmin.objectstore import ObjectNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tenantadmin.objectstore import ObjectStore

#: Positions within one file; the object's number in the listing stands above these bits.
_POSITION_BITS: Final = 28
#: Requests in flight to a store that answers over the network.
_REMOTE_READS: Final = 16

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class BatchObject:
    """One object to read: its number in the day's listing, its key and the hour of its prefix."""

    number: int
    key: str
    hour: int


@dataclass(frozen=True, slots=True)
class Quarantined:
    """What was set aside: an object's key, the entry's position (None: the whole file) and the reason."""

    key: str
    position: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What one batch gave: how many entries were written, and what was set aside."""

    entries: int
    quarantined: tuple[Quarantined, ...]


def log_ids_path(target: Path) -> Path:
    """The file of `logId`s that `write_batch` puts beside ``target``."""
    return target.with_suffix(".ids")


def write_batch(
    store: ObjectStore, objects: Sequence[BatchObject], *, target: Path, is_canonical: bool
) -> BatchResult:
    """Read ``objects`` and write their entries to the NDJSON file ``target``, and `log_ids_path` of it.

    Args:
        is_canonical: write each entry anew with the known columns alone, instead of its own bytes.

    Raises:
        StoreError: an object could not be read. One that is gone since the listing counts as absent.
    """
    written = 0
    quarantined: list[Quarantined] = []
    with (
        target.open("wb", buffering=1 << 20) as out,
        log_ids_path(target).open("wb", buffering=1 << 20) as ids,
    ):
        for item, body in _read_all(store, objects):
            accepted, rejected = read_entries(body)
            lines: list[bytes | memoryview] = []
            for entry in accepted:
                ordinal = item.number << _POSITION_BITS | entry.position
                lines += _engine_line(item, entry, ordinal=ordinal, is_canonical=is_canonical)
                if entry.log_id is not None:
                    ids.write(b'{"_ordinal":%d,"logId":%b}\n' % (ordinal, _encode(entry.log_id)))
            # One write for a file of many entries: a call for each costs as much as the check.
            out.write(b"".join(lines))
            written += len(accepted)
            quarantined += [Quarantined(item.key, wrong.position, wrong.reason) for wrong in rejected]
    return BatchResult(written, tuple(quarantined))


def _engine_line(
    item: BatchObject, entry: Accepted, *, ordinal: int, is_canonical: bool
) -> Sequence[bytes | memoryview]:
    line = canonical(entry.line) if is_canonical else entry.line
    front = b'{"_ordinal":%d,"_hour":%d' % (ordinal, item.hour)
    if line[1:2] == b'"' or not line[1:].lstrip(b" \t").startswith(b"}"):
        front += b","
    return front, memoryview(line)[1:], b"\n"


def _read_all(store: ObjectStore, objects: Iterable[BatchObject]) -> Iterator[tuple[BatchObject, bytes]]:
    is_local = store.url.startswith("file:")
    one_by_one = ((item, _read(store, item)) for item in objects)
    for item, body in one_by_one if is_local else _read_ahead(store, iter(objects)):
        if body is not None:
            yield item, body


def _read_ahead(
    store: ObjectStore, objects: Iterator[BatchObject]
) -> Iterator[tuple[BatchObject, bytes | None]]:
    """Bodies in the given order, with a bounded number of reads under way."""
    with ThreadPoolExecutor(_REMOTE_READS) as pool:
        window: list[tuple[BatchObject, Future[bytes | None]]] = [
            (item, pool.submit(_read, store, item)) for item in islice(objects, 2 * _REMOTE_READS)
        ]
        while window:
            item, future = window.pop(0)
            yield item, future.result()
            window += [(item, pool.submit(_read, store, item)) for item in islice(objects, 1)]


def _read(store: ObjectStore, item: BatchObject) -> bytes | None:
    try:
        return store.read(item.key)
    except ObjectNotFound:
        return None
