"""`ObjectStore`: the base class of the stores on local files and on S3. Objects, their keys, and errors.

A key is a POSIX path without a leading slash: ``<tenantId>/logs/2026/11/21/07/a.json``. A prefix is
empty, or a key followed by a slash. A store may allow fewer keys: names of local files must be shorter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import accumulate
from operator import attrgetter
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeVar

import msgspec
from django.core.exceptions import SuspiciousFileOperation
from django.core.files import File
from django.core.files.storage import Storage

from tenantadmin.lib.core.metrics import count_store_error

if TYPE_CHECKING:
    #: Names of folders and of objects, as `Storage.listdir` returns them.
    Names = tuple[list[str], list[str]]

Item = TypeVar("Item")

MAX_KEY_BYTES: Final = 1024
#: Maximum objects and bytes in a batch. A larger object is the only one in its batch.
BATCH_OBJECTS: Final = 1_000
BATCH_BYTES: Final = 8 << 20
_FORBIDDEN_SEGMENTS: Final = frozenset({"", ".", ".."})
#: Threads that read objects when there are many.
_THREADS: Final = 16
#: Maximum reads and bytes that are ahead of the caller. A larger object is read alone.
_READS_AHEAD: Final = 2 * _THREADS
_BYTES_AHEAD: Final = 64 << 20


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


class ObjectStore(Storage, ABC):
    """A Django storage whose names are keys.

    `save` keeps the name and replaces the object: a reader sees the whole old or the whole new object. `open`
    only reads. Every error is a `StoreError`. Some methods beyond Django's handle many objects at once.
    Threads may share a store.
    """

    #: The exceptions of the storage class that this one extends. They become `StoreError`s.
    failures: ClassVar[tuple[type[Exception], ...]] = (OSError,)
    #: How many small objects a thread reads one after the other, when many are read.
    objects_per_read: ClassVar[int] = 1

    def open(self, name: str, mode: str = "rb") -> File[bytes]:
        """Return the object as a file. Read it from start to end, and close it.

        Raises:
            ObjectNotFound: the object does not exist.
            InvalidKey: no object can have this name.
            StoreError: the store failed, now or while the file is read.
        """
        if mode != "rb":
            raise ValueError(f"an object is opened with mode 'rb', not {mode!r}; save() replaces it whole")
        key = self._checked(name)
        with self.translated("read", name), _must_exist(name):
            return _ObjectFile(super().open(key), name, store=self)

    def save(self, name: str | None, content: IO[Any], max_length: int | None = None) -> str:
        """Create or replace the object with ``content``. Return ``name``.

        Raises:
            InvalidKey: no object can have this name.
            StoreError: the store failed. The previous object, if any, is unchanged.
        """
        if name is None:
            raise InvalidKey("an object needs a name")
        key = self._checked(name)
        with self.translated("write", name):
            super().save(key, content, max_length)
        return name

    def get_available_name(self, name: str, max_length: int | None = None) -> str:  # noqa: ARG002
        """Return the name unchanged: `save` replaces the object."""
        return name

    def delete(self, name: str) -> None:
        """Delete the object. If it does not exist, do nothing."""
        key = self._checked(name)
        with suppress(ObjectNotFound), self.translated("delete", name), _must_exist(name):
            super().delete(key)

    def delete_many(self, names: Iterable[str]) -> None:
        """Delete objects. Missing objects are skipped.

        Raises:
            StoreError: the store failed. Some objects may be deleted.
        """
        for name in names:
            self.delete(name)

    def size(self, name: str) -> int:
        """Return the size of the object in bytes. Raises the same errors as `open`."""
        key = self._checked(name)
        with self.translated("read", name), _must_exist(name):
            return super().size(key)

    def exists(self, name: str) -> bool:
        """Return True if there is an object with this name. Folders and symbolic links are not objects."""
        try:
            self.size(name)
        except ObjectNotFound:
            return False
        return True

    @abstractmethod
    def listdir(self, path: str) -> Names:
        """Return the names of the non-empty folders and of the objects directly under the prefix ``path``."""

    @abstractmethod
    def list(self, prefix: str) -> Iterator[Entry]:
        """Yield every object under ``prefix``, at any depth, in any order."""

    def read_many(self, objects: Iterable[Entry]) -> Iterator[Batch]:
        """Read the objects that exist, in the given order. Threads read ahead of the caller.

        Args:
            objects: entries of `list`. If an object has changed since, its batch has the old size and etag.
        """
        return in_batches(self._read_ahead(objects))

    def _read_ahead(self, objects: Iterable[Entry]) -> Iterator[tuple[Entry, bytes]]:
        groups = grouped(objects, attrgetter("size"), count=self.objects_per_read, size=BATCH_BYTES)
        upcoming = next(groups, None)
        reads: deque[tuple[Sequence[Entry], Future[Sequence[bytes | None]]]] = deque()
        bytes_ahead = 0
        with ThreadPoolExecutor(_THREADS) as pool:
            while upcoming is not None or reads:
                while upcoming is not None and (
                    not reads
                    or (len(reads) < _READS_AHEAD and bytes_ahead + _size_of(upcoming) <= _BYTES_AHEAD)
                ):
                    reads.append((upcoming, pool.submit(self._read_group, upcoming)))
                    bytes_ahead += _size_of(upcoming)
                    upcoming = next(groups, None)
                group, reading = reads[0]
                for entry, body in zip(group, reading.result(), strict=True):
                    if body is not None:
                        yield entry, body
                # The caller keeps the last object in memory until it asks for the next one.
                reads.popleft()
                bytes_ahead -= _size_of(group)

    def _read_group(self, entries: Iterable[Entry]) -> Sequence[bytes | None]:
        return [self._read_if_exists(entry.key) for entry in entries]

    @abstractmethod
    def _read_if_exists(self, key: str) -> bytes | None:
        """Return the bytes of the object, or None if it does not exist."""

    @abstractmethod
    def check_reachable(self, *, seconds: float) -> None:
        """Ask the store for something small, once.

        Raises:
            StoreError: it cannot be reached within about ``seconds``, or refuses.
        """

    @abstractmethod
    def remove_unfinished(self, *, age: timedelta) -> int:
        """Remove what is left of writes that are older than ``age`` and never ended. Return how many."""

    def _checked(self, name: str) -> str:
        """Return the name under which the extended storage class finds the object."""
        return check_key(name)

    @contextmanager
    def translated(self, verb: str, key: str) -> Iterator[None]:
        """Turn exceptions of the extended storage class into `StoreError`s."""
        try:
            yield
        except StoreError:
            raise
        except SuspiciousFileOperation as error:
            raise InvalidKey(str(error)) from error
        except self.failures as error:
            if not isinstance(error, FileNotFoundError | NotADirectoryError):
                count_store_error(verb=verb)
            raise StoreError(f"cannot {verb} {key!r}: {getattr(error, 'strerror', None) or error}") from error


def _size_of(entries: Iterable[Entry]) -> int:
    return sum(entry.size for entry in entries)


class _ObjectFile(File):  # type: ignore[type-arg]  # only the stubs have a type argument
    """An object that is open for reading."""

    def __init__(self, file: File[bytes], name: str, *, store: ObjectStore) -> None:
        super().__init__(file, name)
        self._key, self._store = name, store
        self._read: Callable[..., bytes] = file.read

    def read(self, size: int = -1) -> bytes:
        with self._store.translated("read", self._key):
            return self._read() if size < 0 else self._read(size)


@contextmanager
def _must_exist(key: str) -> Iterator[None]:
    """Raise `ObjectNotFound` if the extended storage class finds no such file."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise ObjectNotFound(key) from None
