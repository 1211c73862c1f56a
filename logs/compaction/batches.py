"""A day's objects to rows, in the order of keys and positions, and what is set aside of them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from logs.compaction.convert import Converter, Entries, connect
from logs.compaction.entries import BadFile, Lines, find_refused, is_utf8, split

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from datetime import date

    from logs.compaction.entries import Text
    from logs.listing import RawObject

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
    files: Iterable[tuple[RawObject, bytes]], *, day: date, quarantined: list[Quarantined]
) -> Iterator[pa.RecordBatch]:
    """The rows of ``files``, in order; what is set aside goes to ``quarantined``, in none."""
    with connect() as engine, ThreadPoolExecutor(_THREADS) as pool:
        idle: SimpleQueue[Converter] = SimpleQueue()
        for _ in range(_THREADS):
            idle.put(Converter(engine, day=day))
        ahead: deque[Future[pa.RecordBatch]] = deque()
        for entries in _pieces(files, quarantined):
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


def _pieces(files: Iterable[tuple[RawObject, bytes]], quarantined: list[Quarantined]) -> Iterator[Entries]:
    """The entries of all files, about `_PIECE_BYTES` at a time: of many, or part of one."""
    objects: list[RawObject] = []
    bodies: list[bytes] = []
    size = 0
    for item, body in files:
        if bodies and size + len(body) > _PIECE_BYTES:
            yield from _cut(objects, bodies, quarantined)
            objects, bodies, size = [], [], 0
        objects.append(item)
        bodies.append(body)
        size += len(body)
    yield from _cut(objects, bodies, quarantined)


def _cut(
    objects: Sequence[RawObject], bodies: Sequence[bytes], quarantined: list[Quarantined]
) -> Iterator[Entries]:
    known_utf8 = all(map(bytes.isascii, bodies)) or is_utf8(b"\n".join(bodies))
    # Most often each is an entry, by the thousand, or the only one is lines.
    alone = known_utf8 and len(bodies) > 1
    others = frozenset(find_refused(bodies) if alone else range(len(bodies)))
    texts: list[Text] = []
    hours = bytearray()
    for place, (item, body) in enumerate(zip(objects, bodies, strict=True)):
        if place not in others:
            texts.append(body)
            hours.append(item.hour)
            continue
        try:
            values = split(body, known_utf8=known_utf8)
        except BadFile as error:
            quarantined.append(Quarantined(item.key, None, str(error)))
            continue
        quarantined += [Quarantined(item.key, number, reason) for number, reason in values.wrong.items()]
        if len(bodies) == 1 and isinstance(values.texts, Lines):
            yield from _cut_lines(body, values.texts, left_out=values.wrong, hour=item.hour)
            return
        good = [text for number, text in enumerate(values.texts) if number not in values.wrong]
        texts += good
        hours += bytes((item.hour,)) * len(good)
    for start, end in _cuts(list(accumulate(map(len, texts), initial=0))):
        runs = range(start, end, _PARSED_AT_ONCE)
        arrays = [_strung(texts[first : min(first + _PARSED_AT_ONCE, end)]) for first in runs]
        yield Entries(arrays, hours[start:end])


def _cut_lines(body: bytes, lines: Lines, *, left_out: Collection[int], hour: int) -> Iterator[Entries]:
    """The lines of one file, of which nothing is copied but where some are left out."""
    starts = lines.starts[:]
    starts[-1] = len(body)
    texts = _texts(starts, body)
    for start, end in _cuts(starts):
        some = texts.slice(start, end - start)
        if own := [place for place in left_out if start <= place < end]:
            some = texts.take(pa.array(sorted({*range(start, end)} - {*own}), pa.int64()))
        if count := len(some):
            runs = range(0, count, _PARSED_AT_ONCE)
            yield Entries([some.slice(first, _PARSED_AT_ONCE) for first in runs], bytes((hour,)) * count)


def _cuts(starts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where to cut texts into pieces: the first, and the one behind the last, of each.

    Args:
        starts: where each text starts, and the last ends.
    """
    first, last = 0, len(starts) - 1
    while first < last:
        end = bisect_left(starts, starts[first] + _PIECE_BYTES, first + 1, last)
        yield first, end
        first = end


def _strung(texts: Sequence[Text]) -> pa.Array[Any]:
    return _texts(array("q", accumulate(map(len, texts), initial=0)), b"".join(texts))


def _texts(bounds: array[int], texts: bytes) -> pa.Array[Any]:
    """What lies between ``bounds``, nothing of which is copied; it is known to be UTF-8."""
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(texts)]
    return pa.Array.from_buffers(pa.large_string(), len(bounds) - 1, buffers)
