"""The keys of objects, in batches where there are many, and the errors of a store.

A key is a POSIX path without a leading slash: ``<tenantId>/logs/2026/11/21/07/a.json``. A prefix is
empty, or a key followed by a slash. A store may allow fewer keys: names of local files must be shorter.
"""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

MAX_KEY_BYTES: Final = 1024


_FORBIDDEN_SEGMENTS: Final = frozenset({"", ".", ".."})


class StoreError(Exception):
    """The store failed: the disk, the network or the S3 server."""


class ObjectNotFound(StoreError, FileNotFoundError):
    """There is no object under this key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"no object {key!r}")
        self.key = key


class InvalidKey(StoreError, ValueError):
    """The key could name something outside the store, or cannot be stored."""


def check_key(key: str) -> str:
    """Return ``key`` if it is a valid key.

    Raises:
        InvalidKey: it is empty, absolute, too long, not Unicode, or has an empty, ``.`` or ``..`` segment.
    """
    if not _FORBIDDEN_SEGMENTS.isdisjoint(key.split("/")):
        raise InvalidKey(f"object key {key!r} has an empty segment, or the segment '.' or '..'")
    if "\0" in key:
        raise InvalidKey(f"object key {key!r} contains a NUL character")
    try:
        length = len(key) if key.isascii() else len(key.encode())
    except UnicodeEncodeError:
        raise InvalidKey(f"object key {key!r} is not Unicode text") from None
    if length > MAX_KEY_BYTES:
        raise InvalidKey(f"object key {key[:80]!r}… has {length} bytes; the most is {MAX_KEY_BYTES}")
    return key


def is_key(key: str) -> bool:
    """Return True if the key is valid. S3 tools also write folder markers (``a/``), whose keys are not."""
    try:
        check_key(key)
    except InvalidKey:
        return False
    return True


def check_prefix(prefix: str) -> str:
    """Return ``prefix`` if it is empty, or a valid key followed by one slash.

    Raises:
        InvalidKey: it is neither.
    """
    if prefix:
        if not prefix.endswith("/"):
            raise InvalidKey(f"prefix {prefix!r} does not end in a slash")
        check_key(prefix[:-1])
    return prefix


Item = TypeVar("Item")


#: Maximum objects and bytes in a batch. A larger object is the only one in its batch.
BATCH_OBJECTS: Final = 1_000


BATCH_BYTES: Final = 8 << 20


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One stored object. ``size`` is in bytes; ``etag`` changes whenever the content changes.

    A day has hundreds of thousands of entries, so the garbage collector does not track them (``gc=False``).
    """

    key: str
    size: int
    etag: str


class Batch(NamedTuple):
    """Some objects with their whole content.

    Attributes:
        entries: the objects, with the size and etag that they had when they were read, or before.
        content: the bytes of the objects, in the order of `entries`, separated by line breaks.
        starts: the offset of each object in `content`, then the offset at which one more object would start.
    """

    entries: Sequence[Entry]
    content: bytes
    starts: array[int]

    def body(self, index: int) -> bytes:
        """Return the bytes of the object at this index."""
        return self.content[self.starts[index] : self.starts[index + 1] - 1]

    def items(self) -> Iterator[tuple[Entry, bytes]]:
        """Yield each entry with the object's bytes."""
        return ((entry, self.body(index)) for index, entry in enumerate(self.entries))


def starts_of(sizes: Iterable[int]) -> array[int]:
    """Return the offsets of texts of these sizes when joined by line breaks (see `Batch.starts`)."""
    return array("q", accumulate((size + 1 for size in sizes), initial=0))


def in_batches(objects: Iterable[tuple[Entry, bytes]]) -> Iterator[Batch]:
    """Group the objects into batches, in the same order."""
    for group in grouped(objects, lambda item: len(item[1]), count=BATCH_OBJECTS, size=BATCH_BYTES):
        entries, bodies = zip(*group, strict=True)
        yield Batch(entries, b"\n".join(bodies), starts_of(map(len, bodies)))


def grouped(
    items: Iterable[Item], size_of: Callable[[Item], int], *, count: int, size: int
) -> Iterator[list[Item]]:
    """Group items in order: at most ``count``, of ``size`` in total. A larger item has its own group."""
    group: list[Item] = []
    total = 0
    for item in items:
        if group and total + size_of(item) > size:
            yield group
            group, total = [], 0
        group.append(item)
        total += size_of(item)
        if len(group) == count or total >= size:
            yield group
            group, total = [], 0
    if group:
        yield group
