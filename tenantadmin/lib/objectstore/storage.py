"""`ObjectStore`: the base class of the stores on local files and on S3."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, ClassVar

from django.core.exceptions import SuspiciousFileOperation
from django.core.files import File
from django.core.files.storage import Storage

from tenantadmin.lib.core.metrics import count_store_error
from tenantadmin.lib.objectstore.keys import InvalidKey, ObjectNotFound, StoreError, check_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import timedelta
    from typing import Any

    from tenantadmin.lib.objectstore.batch import Batch, Entry

    #: Names of folders and of objects, as `Storage.listdir` returns them.
    Names = tuple[list[str], list[str]]


class ObjectStore(Storage, ABC):
    """A Django storage whose names are keys.

    `save` keeps the name and replaces the object: a reader sees the whole old or the whole new object. `open`
    only reads. Every error is a `StoreError`. Some methods beyond Django's handle many objects at once.
    Threads may share a store.
    """

    #: The exceptions of the storage class that this one extends. They become `StoreError`s.
    failures: ClassVar[tuple[type[Exception], ...]] = (OSError,)

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
        """Delete objects. Those that do not exist are skipped.

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

    @abstractmethod
    def read_many(self, objects: Iterable[Entry]) -> Iterator[Batch]:
        """Read the objects that exist, in the given order.

        Args:
            objects: entries of `list`. Sorted by key they are read fastest. They are taken one by one.
        """

    @abstractmethod
    def read_all(self, prefix: str, wanted: Callable[[str], object]) -> Iterator[Batch]:
        """Read the objects under ``prefix``, at any depth, whose keys are ``wanted``, sorted by key.

        If an object changes during the read, its entry may have the old size and etag. Deleted objects are
        skipped.
        """

    @abstractmethod
    def uri(self, key: str) -> str:
        """Return the path or URL with which a query engine on this machine can open the object."""

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
