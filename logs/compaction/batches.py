"""One share of a day's objects to an Arrow file of checked entries, in the order of keys and positions.

The entries stay JSON text (`LINES`); beside each stands what decides its place in the day and whether it is
a repetition, so that this is settled before a single column is made.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from logs.compaction.engine import PREFIX_HOUR_COLUMN
from logs.compaction.entries import Entries, read_entries
from tenantadmin.objectstore import ObjectNotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from logs.listing import RawObject
    from tenantadmin.objectstore import ObjectStore

#: The columns of a share's file.
_LINES: Final[dict[str, pa.DataType]] = {
    "line": pa.string(),
    "timestamp": pa.int64(),
    "logId": pa.string(),
    PREFIX_HOUR_COLUMN: pa.int8(),
}
LINES: Final = pa.schema(_LINES)

#: Bytes of entries after which a batch ends, and those that it may not reach, as its offsets have 32 bits.
_BATCH_BYTES: Final = 4 << 20
_MAX_BATCH_BYTES: Final = 1 << 31
#: Requests in flight to a store that answers over the network.
_REMOTE_READS: Final = 16


@dataclass(frozen=True, slots=True)
class Quarantined:
    """What was set aside: an object's key, the entry's position (None: the whole file) and the reason."""

    key: str
    position: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What one share gave: how many entries were written, and what was set aside."""

    entries: int
    quarantined: tuple[Quarantined, ...]


def write_batch(store: ObjectStore, objects: Sequence[RawObject], *, target: Path) -> BatchResult:
    """Read ``objects``, which stand in key order, and write their good entries to ``target``.

    Raises:
        StoreError: an object could not be read. One that is gone since the listing counts as absent.
        OSError: ``target`` could not be written.
    """
    quarantined: list[Quarantined] = []
    count = 0
    with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, LINES) as writer:
        for batch in read_batches(store, objects, quarantined=quarantined):
            writer.write_batch(batch)
            count += batch.num_rows
    return BatchResult(count, tuple(quarantined))


def read_batches(
    store: ObjectStore, objects: Sequence[RawObject], *, quarantined: list[Quarantined]
) -> Iterator[pa.RecordBatch]:
    """The good entries of ``objects``, in order; what is set aside goes to ``quarantined``.

    Raises:
        StoreError: an object could not be read. One that is gone since the listing counts as absent.
    """
    held, hours, size = Entries([], [], []), bytearray(), 0
    for item, body in _read_all(store, objects):
        good, rejected = read_entries(body)
        if rejected:
            quarantined += [Quarantined(item.key, wrong.position, wrong.reason) for wrong in rejected]
        held.texts.extend(good.texts)
        held.timestamps.extend(good.timestamps)
        held.log_ids.extend(good.log_ids)
        hours += bytes((item.hour,)) * len(good.texts)
        size += len(body)
        if size > _BATCH_BYTES:
            yield from _batches(held, hours)
            held, hours, size = Entries([], [], []), bytearray(), 0
    yield from _batches(held, hours)


def _batches(entries: Entries, hours: bytearray) -> Iterator[pa.RecordBatch]:
    # A file may be larger than a batch can be; 64 entries of the largest size fit.
    rows = len(hours) if sum(map(len, entries.texts)) < _MAX_BATCH_BYTES else 64
    for start in range(0, len(hours), rows or 1):
        part = slice(start, start + rows)
        texts = entries.texts[part]
        # They are known to be UTF-8, so that they need not be looked at again.
        bounds = pa.array(list(accumulate(map(len, texts), initial=0)), pa.int32()).buffers()[1]
        columns: list[pa.Array[Any]] = [
            pa.Array.from_buffers(pa.string(), len(texts), [None, bounds, pa.py_buffer(b"".join(texts))]),
            pa.array(entries.timestamps[part], pa.int64()),
            pa.array(entries.log_ids[part], pa.string()),
            pa.Array.from_buffers(pa.int8(), len(texts), [None, pa.py_buffer(bytes(hours[part]))]),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=LINES)


def _read_all(store: ObjectStore, objects: Iterable[RawObject]) -> Iterator[tuple[RawObject, bytes]]:
    is_local = store.url.startswith("file:")
    one_by_one = ((item, _read(store, item)) for item in objects)
    for item, body in one_by_one if is_local else _read_ahead(store, iter(objects)):
        if body is not None:
            yield item, body


def _read_ahead(store: ObjectStore, objects: Iterator[RawObject]) -> Iterator[tuple[RawObject, bytes | None]]:
    """Bodies in the given order, with a bounded number of reads under way."""
    with ThreadPoolExecutor(_REMOTE_READS) as pool:
        window = deque((item, pool.submit(_read, store, item)) for item in islice(objects, 2 * _REMOTE_READS))
        while window:
            item, future = window.popleft()
            yield item, future.result()
            window.extend((item, pool.submit(_read, store, item)) for item in islice(objects, 1))


def _read(store: ObjectStore, item: RawObject) -> bytes | None:
    try:
        return store.read(item.key)
    except ObjectNotFound:
        return None
