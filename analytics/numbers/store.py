"""Working directories, DuckDB connections, and the documents and rollups that builds store.

Each build writes its objects under its own name. A row in the database names the current ones.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import duckdb
from django.conf import settings
from django.core.cache import cache
from django.db import connection
from redis import RedisError

from analytics.models import DayRollup, Kind, MergedRollup, SummaryDocument
from analytics.numbers.merged import HISTORY, DayBuild, period_bounds
from analytics.numbers.tables import ROLLUP_VERSION
from logs.compaction.writer import connect
from logs.models import Partition, SupersededFile
from logs.partitions import supersede
from logs.quoting import quote_text
from logs.sources import local_paths
from logs.sql.view import LogView
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import ObjectStore, StoreError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


_SCRATCH_PREFIX: Final = "tenantadmin-work-"
#: A directory younger than this, in seconds, may not be locked yet.
_MIN_AGE_SECONDS: Final = 600


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """Make a working directory, and remove it at the end.

    If the process is killed, the next call in any process removes the directory.

    Raises:
        StoreError: the disk failed, or DuckDB could not read a file. A retry may help.
    """
    try:
        _remove_abandoned()
        with tempfile.TemporaryDirectory(prefix=_SCRATCH_PREFIX) as directory, _locked(directory):
            yield Path(directory)
    except (OSError, duckdb.IOException) as error:
        raise StoreError(f"cannot build: {error}") from error


@contextmanager
def _locked(directory: str) -> Iterator[None]:
    """Lock ``directory``. The lock ends with the process.

    Raises:
        BlockingIOError: another process holds it.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _remove_abandoned() -> None:
    """Remove the working directories of killed processes."""
    for path in Path(tempfile.gettempdir()).glob(f"{_SCRATCH_PREFIX}*"):
        # It may be in use, belong to another user, or have just been removed.
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _MIN_AGE_SECONDS:
                with _locked(str(path)):
                    shutil.rmtree(path, ignore_errors=True)


def merged_prefix(tenant: UUID, period: str) -> str:
    """Return the prefix of the merged rollups and documents of a month, a year or the history."""
    return f"{tenant}/rollups/period={period}/"


def upload(store: ObjectStore, files: Mapping[str, Path]) -> None:
    """Store each local file under its key."""
    for key, path in files.items():
        with path.open("rb") as stream:
            store.save(key, stream)


def remove_orphans(store: ObjectStore, *, prefix: str, used: Collection[str]) -> None:
    """Delete objects below ``prefix`` that killed builds left. The caller holds the lock of the period.

    Args:
        used: the keys that rows refer to.
    """
    for entry in list(store.list(prefix)):
        if entry.key not in used and not SupersededFile.objects.filter(key=entry.key).exists():
            store.delete(entry.key)


_SHARED_MEMORY: Final = "512MB"


@dataclass(frozen=True, slots=True)
class Engine:
    """A DuckDB connection, and a working directory."""

    connection: DuckDBPyConnection
    directory: Path


@contextmanager
def new_engine(*, memory_limit: str = "1GB", threads: int | None = None) -> Iterator[Engine]:
    """Open a DuckDB for the caller alone.

    Raises:
        StoreError: the disk failed, or DuckDB could not read a file.
    """
    with (
        scratch_directory() as directory,
        connect(spill=directory / "spill", memory_limit=memory_limit, threads=threads) as connection,
    ):
        yield Engine(connection, directory)


def write_rows(sql: str, target: Path, *, logs: Sequence[str] = ()) -> None:
    """Write the rows of a statement as Parquet. ``proxy_logs`` has the entries of the files ``logs``."""
    with new_engine() as engine:
        if logs:
            LogView(engine.connection).make_tolerant(logs)
        engine.connection.execute(f"COPY ({sql}) TO {quote_text(str(target))}")


#: Seconds until the next interrupt.
_AGAIN_SECONDS: Final = 1.0


@contextmanager
def ended_after(seconds: float, connection: DuckDBPyConnection) -> Iterator[None]:
    """Interrupt what the connection runs in the block after a time: it raises duckdb.InterruptException."""
    ended = Event()

    def interrupt() -> None:
        wait = seconds
        # An interrupt between two statements has no effect, so it is repeated.
        while not ended.wait(wait):
            connection.interrupt()
            wait = _AGAIN_SECONDS

    thread = Thread(target=interrupt, name="limit", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def replay_engine() -> Iterator[Engine]:
    """Open a DuckDB for the caller alone, with the memory and thread limits of replays.

    Tables are in a file: there they are compressed, and need no memory while they are not read.

    Raises:
        StoreError: the disk failed, or DuckDB could not read a file.
    """
    limit = f"{settings.REPLAY_MEMORY_BYTES}B"
    with new_engine(memory_limit=limit, threads=settings.REPLAY_THREADS) as engine:
        path = quote_text(str(engine.directory / "replay.duckdb"))
        engine.connection.execute(f"ATTACH {path} AS replay; USE replay")
        # DuckDB compares all pairs of rows if it expects fewer than this, and it expects too few.
        engine.connection.execute("SET asof_loop_join_threshold = 0")
        yield engine


@contextmanager
def shared_engine() -> Iterator[Engine]:
    """Open a session of this process's shared DuckDB. Opening another one takes longer than most queries.

    Raises:
        StoreError: the disk failed, or DuckDB could not read a file.
    """
    try:
        with scratch_directory() as directory, _shared.session() as connection:
            yield Engine(connection, directory)
    except (duckdb.FatalException, duckdb.InternalException):
        # After such an error, DuckDB refuses all queries.
        _shared.reset()
        raise


class _SharedEngine:
    """The DuckDB that this process shares, opened on first use."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._engine: DuckDBPyConnection | None = None
        self._process = 0

    def session(self) -> DuckDBPyConnection:
        """Return a session for one thread, with its own variables. The caller closes it."""
        with self._lock:
            if self._engine is None or self._process != os.getpid():
                self._engine, self._process = _start(), os.getpid()
            return self._engine.cursor()

    def reset(self) -> None:
        """Open a new DuckDB for the next session."""
        with self._lock:
            self._engine = None


def _start() -> DuckDBPyConnection:
    stack = ExitStack()
    directory = stack.enter_context(scratch_directory())
    process = os.getpid()
    # Only the process that made the directory removes it, not its forked children.
    atexit.register(lambda: stack.close() if os.getpid() == process else None)
    engine = connect(spill=directory / "spill", memory_limit=_SHARED_MEMORY)
    # Finished documents are cached, so keep the memory for queries.
    engine.execute("SET enable_external_file_cache = false")
    return engine


_shared: Final = _SharedEngine()

_log = logging.getLogger(__name__)

_SECONDS: Final = 3600


def get_cached(key: str) -> bytes | None:
    """Return the document under ``key``; None if there is none or the cache does not answer."""
    body: bytes | None = _cache.call(lambda: cache.get(key))
    return body


def cache_document(key: str, body: bytes) -> None:
    """Keep ``body`` for an hour. Do nothing if the cache does not answer."""
    _cache.call(lambda: cache.set(key, body, _SECONDS))


def forget_document(key: str) -> None:
    """Delete the document under ``key``. Do nothing if the cache does not answer."""
    _cache.call(lambda: cache.delete(key))


class _Cache:
    """Calls the cache. Logs an outage once, until the cache answers again."""

    def __init__(self) -> None:
        self._is_unavailable = False

    def call(self, operation: Callable[[], Any]) -> Any:
        try:
            result = operation()
        except RedisError as error:
            if not self._is_unavailable:
                _log.warning(
                    "The cache does not answer; users' documents are computed for each request: %s",
                    error,
                )
            self._is_unavailable = True
            return None
        self._is_unavailable = False
        return result


_cache: Final = _Cache()

#: A larger document is stored as an object, and is never in memory as a whole.
INLINE_BYTES: Final = 16 << 10
#: The ORM takes longer to build this query than PostgreSQL to answer it. Dashboards send it most.
_READ_DOCUMENT: Final = (
    f"SELECT body, file, bytes, etag FROM {SummaryDocument._meta.db_table}"  # noqa: S608  # the table's name is not input
    " WHERE tenant_id = %s AND kind = %s AND period = %s"
)


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """A new document as JSON: ``body``, or the local file ``path`` if it is large. ``etag`` has quotes."""

    body: bytes
    path: Path | None
    bytes: int
    etag: str


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A stored document as JSON: ``body``, or the object ``file`` if it is large. ``etag`` has quotes."""

    body: bytes
    file: str
    bytes: int
    etag: str


@dataclass(frozen=True, slots=True)
class StoredRollup:
    """The current rollups of a month or a year. ``files`` maps table names to object keys."""

    build: str
    source: str
    files: Mapping[str, str]
    version: int


def write_document(pieces: Iterable[bytes], *, spill: Path) -> WrittenDocument:
    """Join the pieces of a document. A document above `INLINE_BYTES` is written to the file ``spill``."""
    digest = hashlib.sha256()
    size = 0
    in_memory: list[bytes] = []
    stream = None
    try:
        for piece in pieces:
            digest.update(piece)
            size += len(piece)
            if stream is not None:
                stream.write(piece)
                continue
            in_memory.append(piece)
            if size > INLINE_BYTES:
                stream = spill.open("wb")
                stream.writelines(in_memory)
                in_memory = []
    finally:
        if stream is not None:
            stream.close()
    etag = f'"{digest.hexdigest()[:32]}"'
    return WrittenDocument(b"".join(in_memory), None if stream is None else spill, size, etag)


def save_document(
    *, tenant: UUID, kind: Kind, period: str, document: WrittenDocument, source: str, file: str = ""
) -> None:
    """Store a document, and replace the previous one.

    Args:
        source: a digest of the builds that it was computed from.
        file: the key of its object, if the document is too large for a row.
    """
    _supersede_documents(tenant=tenant, period=period, kinds=[kind])
    SummaryDocument.objects.update_or_create(
        tenant_id=tenant,
        kind=kind,
        period=period,
        defaults={
            "body": document.body,
            "file": file,
            "bytes": document.bytes,
            "etag": document.etag,
            "source": source,
            "built_at": now(),
        },
    )


def withdraw_documents(*, tenant: UUID, period: str, kinds: Iterable[Kind]) -> None:
    """Remove the documents of a period without days."""
    kinds = list(kinds)
    _supersede_documents(tenant=tenant, period=period, kinds=kinds)
    SummaryDocument.objects.filter(tenant_id=tenant, period=period, kind__in=kinds).delete()


def _supersede_documents(*, tenant: UUID, period: str, kinds: list[Kind]) -> None:
    stored = SummaryDocument.objects.filter(tenant_id=tenant, period=period, kind__in=kinds)
    supersede(stored.exclude(file="").values_list("file", flat=True))


def read_document(*, tenant: UUID, kind: Kind, period: str) -> StoredDocument | None:
    """Return the stored document, or None if the period has no log entry."""
    with connection.cursor() as cursor:
        cursor.execute(_READ_DOCUMENT, [tenant, kind, period])
        row = cursor.fetchone()
    return None if row is None else StoredDocument(bytes(row[0]), *row[1:])


def day_builds(*, tenant: UUID, period: str = HISTORY) -> list[DayBuild]:
    """Return the builds of the days of a tenant in ``period`` that have rollups, oldest first."""
    rows = DayRollup.objects.filter(tenant_id=tenant, day__range=period_bounds(period)).order_by("day")
    return [
        DayBuild(day, f"{build} {version}", files, is_outdated=version != ROLLUP_VERSION)
        for day, build, version, files in rows.values_list("day", "build", "version", "files")
    ]


def has_outdated_days(*, tenant: UUID, period: str) -> bool:
    """Return True if a day in ``period`` must be rolled up again after an upgrade."""
    days = DayRollup.objects.filter(tenant_id=tenant, day__range=period_bounds(period))
    return days.exclude(version=ROLLUP_VERSION).exists()


def outdated_day_log(*, tenant: UUID, day: date) -> str:
    """Return the key of the Parquet file that an outdated day can be rolled up from, or an empty text.

    It is empty if the day has several files, because a request must be fast.
    """
    rollups = DayRollup.objects.filter(tenant_id=tenant, day=day)
    logs = Partition.objects.filter(
        tenant_id=tenant, day=day, build__in=rollups.values("build"), more_files=[]
    )
    return logs.values_list("file", flat=True).first() or ""


def read_merged_rollups(*, tenant: UUID, periods: Collection[str] | None = None) -> dict[str, StoredRollup]:
    """Return the merged rollups of months and years, by period: all, or only ``periods``."""
    rows = MergedRollup.objects.filter(tenant_id=tenant)
    if periods is not None:
        rows = rows.filter(period__in=periods)
    return {
        period: StoredRollup(*stored)
        for period, *stored in rows.values_list("period", "build", "source", "files", "version")
    }


def local_tables(store: ObjectStore, files: Mapping[str, str]) -> dict[str, str]:
    """Return by table name a path for each file, as `local_paths`."""
    return dict(zip(files, local_paths(store, files.values()), strict=True))
