"""Objects that are read at once, of which there may be hundreds of thousands."""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: Objects that make a batch, and bytes of them; one that is larger is alone in its own.
OBJECTS: Final = 1_000
BYTES: Final = 8 << 20


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One stored object. ``size`` in bytes; ``etag`` changes whenever the content does.

    A day has hundreds of thousands, which the garbage collector need not look at.
    """

    key: str
    size: int
    etag: str


class Batch(NamedTuple):
    """Some objects, each whole.

    Attributes:
        entries: each as the store knew it when, or before, it was read.
        content: their bytes, in the same order, with a line break between two.
        starts: where in it each begins, and where one more would behind a line break.
    """

    entries: Sequence[Entry]
    content: bytes
    starts: array[int]

    def body(self, place: int) -> bytes:
        """The bytes of the object in this place."""
        return self.content[self.starts[place] : self.starts[place + 1] - 1]

    def items(self) -> Iterator[tuple[Entry, bytes]]:
        """Each with its bytes."""
        return ((entry, self.body(place)) for place, entry in enumerate(self.entries))


def starts_of(sizes: Iterable[int]) -> array[int]:
    """Where texts of these sizes begin that are strung together by line breaks, and one more would."""
    return array("q", accumulate((size + 1 for size in sizes), initial=0))


def in_batches(found: Iterable[tuple[Entry, bytes]]) -> Iterator[Batch]:
    """Objects as they come, some at a time."""
    held: list[tuple[Entry, bytes]] = []
    size = 0
    for item in found:
        if held and size + len(item[1]) > BYTES:
            yield _strung(held)
            held, size = [], 0
        held.append(item)
        size += len(item[1])
        if len(held) == OBJECTS or size >= BYTES:
            yield _strung(held)
            held, size = [], 0
    if held:
        yield _strung(held)


def _strung(found: Iterable[tuple[Entry, bytes]]) -> Batch:
    entries, bodies = zip(*found, strict=True)
    return Batch(entries, b"\n".join(bodies), starts_of(map(len, bodies)))
