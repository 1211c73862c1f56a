"""A day's objects to rows, in the order of keys and positions, and what is set aside of them."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from logs.compaction.convert import Converter, Entries, connect
from logs.compaction.entries import BadFile, Lines, find_refused, is_utf8, split
from logs.layout import hour_of
from tenantadmin.objectstore.batch import starts_of

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import date

    from logs.compaction.entries import Text
    from tenantadmin.objectstore import Batch, Entry

#: Bytes of entries that are converted at once: each time costs the engine some for itself.
_PIECE_BYTES: Final = 16 << 20
#: Threads that convert, which does not hold the interpreter, and pieces that may wait for them.
_THREADS: Final = 2
_AHEAD: Final = 3
#: Entries that the engine parses at once.
_PARSED_AT_ONCE: Final = 256


@dataclass(frozen=True, slots=True)
class Quarantined:
    """What was set aside: an object's key, the entry's position (None: the whole file) and the reason."""

    key: str
    position: int | None
    reason: str


def read_rows(
    batches: Iterable[Batch], *, day: date, quarantined: list[Quarantined]
) -> Iterator[pa.RecordBatch]:
    """The rows of all objects, sorted by key as these come; what is set aside goes to ``quarantined``."""
    with connect() as engine, ThreadPoolExecutor(_THREADS) as pool:
        idle: SimpleQueue[Converter] = SimpleQueue()
        for _ in range(_THREADS):
            idle.put(Converter(engine, day=day))
        ahead: deque[Future[pa.RecordBatch]] = deque()
        for entries in _pieces(batches, quarantined):
            ahead.append(pool.submit(_convert, entries, idle))
            if len(ahead) > _AHEAD:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _convert(entries: Entries, idle: SimpleQueue[Converter]) -> pa.RecordBatch:
    converter = idle.get()
    try:
        return converter.convert(entries)
    finally:
        idle.put(converter)


def _pieces(batches: Iterable[Batch], quarantined: list[Quarantined]) -> Iterator[Entries]:
    """The entries of all objects, about `_PIECE_BYTES` at a time: of many, or part of one."""
    texts: list[pa.Array[Any]] = []
    hours = bytearray()
    size = held = 0
    for batch in batches:
        # Few texts of a batch, where most is set aside, hold all of it.
        held += len(batch.content)
        for some, own in _cut(batch, quarantined):
            texts.append(some)
            hours += own
            size += some.nbytes
            if size >= _PIECE_BYTES or held >= 2 * _PIECE_BYTES:
                yield Entries(texts, hours)
                texts, hours, size, held = [], bytearray(), 0, 0
    if texts:
        yield Entries(texts, hours)


def _cut(batch: Batch, quarantined: list[Quarantined]) -> Iterator[tuple[pa.Array[Any], bytes | bytearray]]:
    """The entries of some objects, a few at a time, and the hours of their prefixes."""
    count = len(batch.entries)
    hours = _hours_of(batch.entries)
    # Most often each is an entry, by the thousand, or the only one is lines.
    at_once = count > 1 and is_utf8(batch.content)
    others: dict[int, Sequence[Text]] = {}
    for place in find_refused(batch.content, batch.starts) if at_once else range(count):
        key = batch.entries[place].key
        try:
            values = split(batch.body(place), known_utf8=at_once)
        except BadFile as error:
            quarantined.append(Quarantined(key, None, str(error)))
            others[place] = ()
            continue
        quarantined += [Quarantined(key, number, reason) for number, reason in values.wrong.items()]
        if count == 1 and isinstance(values.texts, Lines):
            left_out: dict[int, Sequence[Text]] = dict.fromkeys(values.wrong, ())
            yield from _arrays(batch.content, values.texts.starts, hours * len(values.texts), left_out)
            return
        others[place] = [text for number, text in enumerate(values.texts) if number not in values.wrong]
    yield from _arrays(batch.content, batch.starts, hours, others)


def _hours_of(entries: Sequence[Entry]) -> bytes:
    first, last = hour_of(entries[0].key), hour_of(entries[-1].key)
    # They come in the order of their keys.
    return bytes([first] * len(entries) if first == last else [hour_of(entry.key) for entry in entries])


def _arrays(
    strung: bytes, starts: array[int], hours: bytes | bytearray, others: Mapping[int, Sequence[Text]]
) -> Iterator[tuple[pa.Array[Any], bytes | bytearray]]:
    """Texts as the engine parses them at once, nothing of which is copied but near those with ``others``.

    Args:
        strung: texts, with a line break between two.
        starts: where each begins, and one more would behind a line break.
        hours: one of each.
        others: texts that stand in place of one.
    """
    bounds = starts[:]
    bounds[-1] = min(bounds[-1], len(strung))
    texts = _texts(bounds, strung)
    places = sorted(others)
    for first, end in _cuts(bounds):
        if bisect_left(places, first) == bisect_left(places, end):
            yield texts.slice(first, end - first), hours[first:end]
            continue
        gathered: list[Text] = []
        own = bytearray()
        for place in range(first, end):
            some = others.get(place, (strung[bounds[place] : bounds[place + 1]],))
            gathered += some
            own += hours[place : place + 1] * len(some)
        yield from _arrays(b"\n".join(gathered), starts_of(map(len, gathered)), own, {})


def _cuts(bounds: array[int]) -> Iterator[tuple[int, int]]:
    """Where to cut texts: the first, and the one behind the last, of what the engine parses at once.

    Args:
        bounds: where each text begins, and the last ends.
    """
    first, last = 0, len(bounds) - 1
    while first < last:
        end = bisect_left(bounds, bounds[first] + _PIECE_BYTES, first + 1, last)
        end = min(end, first + _PARSED_AT_ONCE)
        yield first, end
        first = end


def _texts(bounds: array[int], texts: bytes) -> pa.Array[Any]:
    """What lies between ``bounds``, nothing of which is copied; it is known to be UTF-8."""
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(texts)]
    return pa.Array.from_buffers(pa.large_string(), len(bounds) - 1, buffers)
