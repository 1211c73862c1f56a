"""A day's objects to rows, in the order of keys and positions, and what is set aside of them."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate, compress
from typing import TYPE_CHECKING, Final

from logs.compaction.convert import Converter
from logs.compaction.entries import BadFile, is_utf8, split, why_wrong

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
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


@dataclass(frozen=True, slots=True)
class _Part:
    """A run of a file's values: the file, the values' first position in it, and how many there are."""

    item: RawObject
    first: int
    count: int


@dataclass(slots=True)
class _Piece:
    """JSON values that are converted together, and where they came from."""

    texts: list[Text] = field(default_factory=list)
    parts: list[_Part] = field(default_factory=list)
    are_objects: bool = True


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
    known_utf8 = is_utf8(b"\n".join([body for _, body in files]))
    piece = _Piece()
    for item, body in files:
        try:
            texts, are_objects = split(body, known_utf8=known_utf8)
        except BadFile as error:
            quarantined.append(Quarantined(item.key, None, str(error)))
            continue
        if len(body) < _PIECE_BYTES:
            piece.texts += texts
            piece.parts.append(_Part(item, 0, len(texts)))
            piece.are_objects &= are_objects
            continue
        if piece.texts:
            yield piece
            piece = _Piece()
        ends = list(accumulate(map(len, texts)))
        start = 0
        while start < len(texts):
            before = ends[start - 1] if start else 0
            end = bisect_left(ends, before + _PIECE_BYTES) + 1
            part = list(texts[start:end])
            yield _Piece(part, [_Part(item, start, len(part))], are_objects)
            start = end
    if piece.texts:
        yield piece


def _convert(piece: _Piece, converter: Converter) -> tuple[pa.RecordBatch | None, list[Quarantined]]:
    texts, hours = piece.texts, b"".join(bytes((part.item.hour,)) * part.count for part in piece.parts)
    rows = converter.parse(texts, hours=hours) if piece.are_objects else None
    if rows is not None:
        return rows, []
    reasons = list(map(why_wrong, texts))
    origins = ((part.item.key, part.first + number) for part in piece.parts for number in range(part.count))
    wrong = [
        Quarantined(key, position, reason)
        for (key, position), reason in zip(origins, reasons, strict=True)
        if reason is not None
    ]
    if wrong:
        good = [reason is None for reason in reasons]
        texts, hours = list(compress(texts, good)), bytes(compress(hours, good))
        rows = converter.parse(texts, hours=hours)
    return rows or (converter.convert(texts, hours=hours) if texts else None), wrong
