"""The storage of objects: what is common to local files and S3."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, ClassVar

from django.core.exceptions import SuspiciousFileOperation
from django.core.files import File
from django.core.files.storage import Storage

from tenantadmin.objectstore.keys import InvalidKey, ObjectNotFound, StoreError, check_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import timedelta
    from typing import Any

    from tenantadmin.objectstore.batch import Batch, Entry

    #: Names of folders and of objects, as `Storage.listdir` returns them.
    Names = tuple[list[str], list[str]]


class ObjectStore(Storage, ABC):
    """A Django storage whose names are keys.

    `save` keeps the name and replaces the object: a reader sees the old or the new one whole. `open` only
    reads. Whatever fails is a `StoreError`. Beside Django's methods there are some for many objects at once.
    Threads may share a store.
    """

    #: What the storage below raises when it fails.
    failures: ClassVar[tuple[type[Exception], ...]] = (OSError,)

    def open(self, name: str, mode: str = "rb") -> File[bytes]:
        """Return the object as a file, which is read forwards and closed by the caller.

        Raises:
            ObjectNotFound: there is none.
            InvalidKey: no object can have this name.
            StoreError: the store failed, now or while the file is read.
        """
        if mode != "rb":
            raise ValueError(f"objects are opened with mode 'rb', not {mode!r}; save() replaces them whole")
        key = self._checked(name)
        with self.translated("read", name), _must_exist(name):
            return _ObjectFile(super().open(key), name, store=self)

    def save(self, name: str | None, content: IO[Any], max_length: int | None = None) -> str:
        """Store ``content``, replacing what was there; returns ``name``.

        Raises:
            InvalidKey: no object can have this name.
            StoreError: the store failed; what was there is still there.
        """
        if name is None:
            raise InvalidKey("an object needs a name")
        key = self._checked(name)
        with self.translated("write", name):
            super().save(key, content, max_length)
        return name

    def get_available_name(self, name: str, max_length: int | None = None) -> str:  # noqa: ARG002
        """Return the name itself: `save` replaces the object."""
        return name

    def delete(self, name: str) -> None:
        """Remove the object; one that is not there is no error."""
        key = self._checked(name)
        with suppress(ObjectNotFound), self.translated("delete", name), _must_exist(name):
            super().delete(key)

    def size(self, name: str) -> int:
        """Return the size of the object in bytes; raises as `open` does."""
        key = self._checked(name)
        with self.translated("read", name), _must_exist(name):
            return super().size(key)

    def exists(self, name: str) -> bool:
        """Return True if there is an object of this name; folders and symbolic links are none."""
        try:
            self.size(name)
        except ObjectNotFound:
            return False
        return True

    @abstractmethod
    def listdir(self, path: str) -> Names:
        """The names of the non-empty folders and of the objects directly under the prefix ``path``."""

    @abstractmethod
    def list(self, prefix: str) -> Iterator[Entry]:
        """Every object under ``prefix``, at any depth, in no stated order."""

    @abstractmethod
    def read_many(self, objects: Iterable[Entry]) -> Iterator[Batch]:
        """Those of the objects that are there, in the given order.

        Args:
            objects: what was listed, best sorted by key. They are taken as they are needed.
        """

    @abstractmethod
    def read_all(self, prefix: str, wanted: Callable[[str], object]) -> Iterator[Batch]:
        """The objects under ``prefix``, at any depth, whose keys are ``wanted``, sorted by key.

        An object that changes meanwhile may come with the entry of before. One that is gone does not come.
        """

    @abstractmethod
    def uri(self, key: str) -> str:
        """The address under which a query engine on this machine opens the object itself."""

    @abstractmethod
    def remove_unfinished(self, *, age: timedelta) -> int:
        """Remove what writes that never ended, and began longer than ``age`` ago, left; returns how many."""

    def _checked(self, name: str) -> str:
        """The name by which the storage below knows an object."""
        return check_key(name)

    @contextmanager
    def translated(self, verb: str, key: str) -> Iterator[None]:
        """Raise what the storage below raises as `StoreError`."""
        try:
            yield
        except StoreError:
            raise
        except SuspiciousFileOperation as error:
            raise InvalidKey(str(error)) from error
        except self.failures as error:
            raise StoreError(f"cannot {verb} {key!r}: {getattr(error, 'strerror', None) or error}") from error


class _ObjectFile(File):  # type: ignore[type-arg]  # only the stubs have one
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
    """Raise `ObjectNotFound` where the storage below says that there is no such file."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise ObjectNotFound(key) from None
