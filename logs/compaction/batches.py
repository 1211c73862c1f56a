"""A day's objects to rows, in the order of keys and positions, and what is set aside of them."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

from logs.compaction.convert import Converter, Entries, connect
from logs.compaction.entries import BadFile, Values, find_wrong, is_utf8, split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import date
    from pathlib import Path

    import pyarrow as pa

    from logs.compaction.entries import Text
    from logs.listing import RawObject

#: Bytes of entries that are converted at once: each time costs the engine some for itself.
_PIECE_BYTES: Final = 8 << 20
#: Threads that convert, which does not hold the interpreter, and pieces that may wait for them.
_THREADS: Final = 2
_AHEAD: Final = 2


@dataclass(frozen=True, slots=True)
class Quarantined:
    """What was set aside: an object's key, the entry's position (None: the whole file) and the reason."""

    key: str
    position: int | None
    reason: str


def read_rows(
    files: Iterable[tuple[RawObject, bytes]],
    *,
    day: date,
    quarantined: list[Quarantined],
    directory: Path,
) -> Iterator[pa.RecordBatch]:
    """The rows of ``files``, in order; what is set aside goes to ``quarantined``, in none.

    ``directory`` takes files that are gone when this has ended.

    Raises:
        OSError: a file could not be written there.
    """
    with ExitStack() as stack, ThreadPoolExecutor(_THREADS) as pool:
        engine = stack.enter_context(connect())
        idle: SimpleQueue[Converter] = SimpleQueue()
        for number in range(_THREADS):
            converter = Converter(engine, day=day, file=directory / f"entries-{number}.json")
            idle.put(stack.enter_context(converter))
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
    held: list[tuple[RawObject, bytes]] = []
    size = 0
    for item, body in files:
        if held and size + len(body) > _PIECE_BYTES:
            yield from _cut(held, quarantined)
            held, size = [], 0
        held.append((item, body))
        size += len(body)
    yield from _cut(held, quarantined)


def _cut(files: Sequence[tuple[RawObject, bytes]], quarantined: list[Quarantined]) -> Iterator[Entries]:
    bodies = [body for _, body in files]
    known_utf8 = all(map(bytes.isascii, bodies)) or is_utf8(b"\n".join(bodies))
    # Most often each is an entry, by the thousand, or the only one is lines.
    others = find_wrong(bodies) if known_utf8 else range(len(files))
    texts: list[Text] = []
    hours = bytearray()
    are_lines = True
    for place, (item, body) in enumerate(files):
        if place not in others:
            # A break at its end is none within.
            text = body.rstrip()
            texts.append(text)
            hours.append(item.hour)
            are_lines &= b"\n" not in text
            continue
        try:
            values = split(body, known_utf8=known_utf8)
        except BadFile as error:
            quarantined.append(Quarantined(item.key, None, str(error)))
            continue
        quarantined += [Quarantined(item.key, number, reason) for number, reason in values.wrong.items()]
        if len(files) == 1 and values.are_lines:
            yield from _cut_lines(body, values, hour=item.hour)
            return
        good = [text for number, text in enumerate(values.texts) if number not in values.wrong]
        texts += good
        hours += bytes((item.hour,)) * len(good)
        are_lines &= values.are_lines
    ends = list(accumulate(map(len, texts), initial=0))
    start = 0
    while start < len(texts):
        end = bisect_left(ends, ends[start] + _PIECE_BYTES, hi=len(texts))
        some = texts[start:end]
        yield Entries(some, hours[start:end], max(map(len, some)), are_lines)
        start = end


def _cut_lines(body: bytes, values: Values, *, hour: int) -> Iterator[Entries]:
    """The lines of one file, of which nothing is copied."""
    view = memoryview(body)
    sizes = list(map(len, values.texts))
    starts = list(accumulate((size + 1 for size in sizes), initial=0))
    first = 0
    while first < len(sizes):
        end = bisect_left(starts, starts[first] + _PIECE_BYTES, hi=len(sizes))
        runs: list[Text] = []
        left_out = [place for place in values.wrong if first <= place < end]
        at = first
        for place in (*left_out, end):
            if at < place:
                runs.append(view[starts[at] : starts[place] - 1])
            at = place + 1
        if runs:
            hours = bytes((hour,)) * (end - first - len(left_out))
            yield Entries(runs, hours, max(sizes[first:end]), are_lines=True)
        first = end
