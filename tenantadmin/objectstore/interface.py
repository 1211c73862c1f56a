"""What every object store offers, and which keys it takes.

A key is a POSIX path without a leading slash: ``<tenantId>/logs/2026/11/21/07/a.json``. A prefix is
empty or a key that ends in a slash. A store may take fewer keys: local files have shorter names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from datetime import timedelta

    from tenantadmin.objectstore.batch import Batch

MAX_KEY_BYTES: Final = 1024
_NOT_SEGMENTS: Final = frozenset({"", ".", ".."})


class StoreError(Exception):
    """The store could not do what was asked: the disk, the network or the other side failed."""


class ObjectNotFound(StoreError):
    """There is no object under this key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"no object {key!r}")
        self.key = key


class InvalidKey(StoreError, ValueError):
    """The key could name something outside the store, or cannot be stored."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One stored object. ``size`` in bytes; ``etag`` changes whenever the content does.

    A day has hundreds of thousands, which the garbage collector need not look at.
    """

    key: str
    size: int
    etag: str


@dataclass(frozen=True, slots=True, order=True)
class Child:
    """One immediate child of a prefix: its last path segment, and whether it is an object."""

    name: str
    is_object: bool


class ObjectStore(Protocol):
    """A flat map of keys to bytes. Implementations may be shared between threads."""

    @property
    def url(self) -> str:
        """The address from which `open_store` makes an equal store in another process."""

    def uri(self, key: str) -> str:
        """The address under which a query engine on this machine opens the object itself."""

    def list(self, prefix: str) -> Iterator[Entry]:
        """Every object under ``prefix``, at any depth, in no stated order."""

    def children(self, prefix: str) -> Iterator[Child]:
        """The objects and non-empty prefixes directly under ``prefix``, each once, in no stated order."""

    def stat(self, key: str) -> Entry:
        """Size and etag of one object.

        Raises:
            ObjectNotFound: there is none.
        """

    def read(self, key: str) -> bytes:
        """The whole object.

        Raises:
            ObjectNotFound: there is none.
        """

    def read_many(self, objects: Iterable[Entry]) -> Iterator[Batch]:
        """Those of the objects that are there, in the given order.

        Args:
            objects: what was listed, best sorted by key. They are taken as they are needed.
        """

    def read_all(self, prefix: str, wanted: Callable[[str], object]) -> Iterator[Batch]:
        """The objects under ``prefix``, at any depth, whose keys are ``wanted``, sorted by key.

        An object that changes meanwhile may come with the entry of before. One that is gone does not come.
        """

    def open(self, key: str) -> AbstractContextManager[BinaryIO]:
        """The object as a stream, for those too large to hold.

        Raises:
            ObjectNotFound: there is none.
        """

    def write(self, key: str, content: bytes | BinaryIO) -> None:
        """Store ``content``, replacing what was there. Readers see the old or the new object whole."""

    def delete(self, key: str) -> None:
        """Remove the object; one that is not there is no error."""

    def remove_unfinished(self, *, age: timedelta) -> int:
        """Remove what writes that never ended, and began longer than ``age`` ago, left; returns how many."""


def check_key(key: str) -> str:
    """Return ``key`` where it names an object inside a store.

    Raises:
        InvalidKey: it is empty, absolute, too long, not Unicode, or has an empty, ``.`` or ``..`` segment.
    """
    if not _NOT_SEGMENTS.isdisjoint(key.split("/")):
        raise InvalidKey(f"object key {key!r} has an empty segment, or one of dots")
    if "\0" in key:
        raise InvalidKey(f"object key {key!r} contains a NUL character")
    try:
        length = len(key) if key.isascii() else len(key.encode())
    except UnicodeEncodeError:
        raise InvalidKey(f"object key {key!r} is not Unicode text") from None
    if length > MAX_KEY_BYTES:
        raise InvalidKey(f"an object key has at most {MAX_KEY_BYTES} bytes: {key[:80]!r}…")
    return key


def is_key(key: str) -> bool:
    """Whether `check_key` takes it: markers of folders, say, name no object that could be read."""
    try:
        check_key(key)
    except InvalidKey:
        return False
    return True


def check_prefix(prefix: str) -> str:
    """Return ``prefix`` where it is empty, or a valid key followed by one slash.

    Raises:
        InvalidKey: it is neither.
    """
    if prefix:
        if not prefix.endswith("/"):
            raise InvalidKey(f"prefix {prefix!r} does not end in a slash")
        check_key(prefix[:-1])
    return prefix
