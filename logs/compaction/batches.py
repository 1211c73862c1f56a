"""A day's objects to rows, in the order of keys and positions, and what is set aside of them."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate, compress
from typing import TYPE_CHECKING, Final

from logs.compaction.convert import Converter, NotParsed
from logs.compaction.entries import BadFile, are_objects, is_utf8, split, why_wrong

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence
    from datetime import date

    import pyarrow as pa

    from logs.compaction.entries import Text
    from logs.listing import RawObject
    from tenantadmin.objectstore import ObjectStore

#: Bytes of entries that are converted at once: one that is wrong costs time for all, a piece some for itself.
_PIECE_BYTES: Final = 2 << 20
#: Threads that convert, which does not hold the interpreter, and pieces that may wait for them.
_THREADS: Final = 2
_AHEAD: Final = 8


@dataclass(frozen=True, slots=True)
class Quarantined:
    """What was set aside: an object's key, the entry's position (None: the whole file) and the reason."""

    key: str
    position: int | None
    reason: str


@dataclass(slots=True)
class _Piece:
    """JSON values that are converted together, and where they came from."""

    texts: list[Text] = field(default_factory=list)
    #: Of the prefix, a byte for each.
    hours: bytearray = field(default_factory=bytearray)
    #: Of each run of values of one file: its key, the first's position, how many there are.
    runs: list[tuple[str, int, int]] = field(default_factory=list)
    are_objects: bool = True

    def add(self, item: RawObject, texts: Sequence[Text], *, first: int, are_objects: bool) -> None:
        """Append values of one file, of which ``first`` is the position of the first of them."""
        self.texts += texts
        self.hours += bytes((item.hour,)) * len(texts)
        self.runs.append((item.key, first, len(texts)))
        self.are_objects &= are_objects

    def quarantined(self, reasons: Mapping[int, str]) -> list[Quarantined]:
        """The values at some places as set aside, each with its reason."""
        origins = [(key, first + number) for key, first, count in self.runs for number in range(count)]
        return [Quarantined(*origins[place], reason) for place, reason in reasons.items()]

    def without(self, places: Container[int]) -> tuple[list[Text], bytes]:
        """The other values, and their hours."""
        stays = [place not in places for place in range(len(self.texts))]
        return list(compress(self.texts, stays)), bytes(compress(self.hours, stays))


def read_rows(
    store: ObjectStore, objects: Sequence[RawObject], *, day: date, quarantined: list[Quarantined]
) -> Iterator[pa.RecordBatch]:
    """The rows of ``objects``, in order; what is set aside goes to ``quarantined``, in none.

    Raises:
        StoreError: an object could not be read. One that is gone since the listing counts as absent.
    """
    with Converter(day) as converter, ThreadPoolExecutor(_THREADS) as pool:
        ahead: deque[Future[tuple[pa.RecordBatch | None, list[Quarantined]]]] = deque()
        for piece in _pieces(store, objects, quarantined=quarantined):
            ahead.append(pool.submit(_convert, piece, converter))
            if len(ahead) > _AHEAD:
                yield from _finish(ahead.popleft(), quarantined)
        while ahead:
            yield from _finish(ahead.popleft(), quarantined)


def _finish(
    future: Future[tuple[pa.RecordBatch | None, list[Quarantined]]], quarantined: list[Quarantined]
) -> Iterator[pa.RecordBatch]:
    rows, wrong = future.result()
    quarantined += wrong
    if rows is not None:
        yield rows


def _pieces(
    store: ObjectStore, objects: Sequence[RawObject], *, quarantined: list[Quarantined]
) -> Iterator[_Piece]:
    """The values of all files that are JSON, about `_PIECE_BYTES` at a time: of many, or part of one."""
    held: list[tuple[RawObject, bytes]] = []
    size = 0
    bodies = store.read_many((item.key, item.size) for item in objects)
    for item, body in zip(objects, bodies, strict=True):
        if body is None:
            continue
        held.append((item, body))
        size += len(body)
        if size >= _PIECE_BYTES:
            yield from _cut(held, quarantined)
            held, size = [], 0
    yield from _cut(held, quarantined)


def _cut(files: Sequence[tuple[RawObject, bytes]], quarantined: list[Quarantined]) -> Iterator[_Piece]:
    bodies: list[Text] = [body for _, body in files]
    known_utf8 = is_utf8(b"\n".join(bodies))
    if len(files) > 1 and known_utf8 and are_objects(bodies):
        # An object to a file, by the thousand.
        hours = bytearray([item.hour for item, _ in files])
        yield _Piece(bodies, hours, [(item.key, 0, 1) for item, _ in files])
        return
    piece = _Piece()
    for item, body in files:
        try:
            values = split(body, known_utf8=known_utf8)
        except BadFile as error:
            quarantined.append(Quarantined(item.key, None, str(error)))
            continue
        if len(body) < _PIECE_BYTES:
            piece.add(item, values.texts, first=0, are_objects=values.are_objects)
            continue
        if piece.texts:
            yield piece
        ends = list(accumulate(map(len, values.texts), initial=0))
        start = 0
        while start < len(values.texts):
            end = bisect_left(ends, ends[start] + _PIECE_BYTES, hi=len(values.texts))
            piece = _Piece()
            piece.add(item, values.texts[start:end], first=start, are_objects=values.are_objects)
            yield piece
            start = end
        piece = _Piece()
    if piece.texts:
        yield piece


def _convert(piece: _Piece, converter: Converter) -> tuple[pa.RecordBatch | None, list[Quarantined]]:
    """The rows of a piece, and which of its values are no entries."""
    suspects = [range(len(piece.texts))]
    if piece.are_objects:
        try:
            return converter.parse(piece.texts, hours=piece.hours), []
        except NotParsed as error:
            # One that is wrong among a thousand is the usual reason.
            if error.place is not None:
                suspects.insert(0, range(error.place, error.place + 1))
    for places in suspects:
        reasons = {place: reason for place in places if (reason := why_wrong(piece.texts[place]))}
        texts, hours = piece.without(reasons)
        if reasons and texts:
            with suppress(NotParsed):
                return converter.parse(texts, hours=hours), piece.quarantined(reasons)
    return converter.convert(texts, hours=hours) if texts else None, piece.quarantined(reasons)
