"""DuckDB connections that read the store. Each build opens its own; requests share one per process."""

from __future__ import annotations

import atexit
import os
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final

import duckdb
from django.conf import settings

from analytics.summaries.files import scratch_directory
from logs.compaction.writer import connect
from tenantadmin.lib.objectstore.duck import attach_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from tenantadmin.lib.objectstore import ObjectStore

#: The store's credentials are renewed after this time. Credentials of an AWS role last at least ten minutes.
_CREDENTIAL_SECONDS: Final = 300
_SHARED_MEMORY: Final = "512MB"


@dataclass(frozen=True, slots=True)
class Engine:
    """A DuckDB connection that can read the store, and a working directory."""

    connection: DuckDBPyConnection
    directory: Path


@contextmanager
def new_engine(
    store: ObjectStore, *, memory_limit: str = "1GB", threads: int | None = None
) -> Iterator[Engine]:
    """Open a DuckDB for the caller alone.

    Raises:
        StoreError: the disk failed, or DuckDB could not read the store.
    """
    with (
        scratch_directory() as directory,
        connect(spill=directory / "spill", memory_limit=memory_limit, threads=threads) as connection,
    ):
        attach_store(connection, store)
        yield Engine(connection, directory)


def replay_engine(store: ObjectStore) -> AbstractContextManager[Engine]:
    """Open a DuckDB for the caller alone, with the memory and thread limits of replays.

    Raises:
        StoreError: the disk failed, or DuckDB could not read the store.
    """
    limit = f"{settings.REPLAY_MEMORY_BYTES}B"
    return new_engine(store, memory_limit=limit, threads=settings.REPLAY_THREADS)


@contextmanager
def shared_engine(store: ObjectStore) -> Iterator[Engine]:
    """Open a session of this process's shared DuckDB. Opening another one takes longer than most queries.

    Raises:
        StoreError: the disk failed, or DuckDB could not read the store.
    """
    try:
        with scratch_directory() as directory, _shared.session(store) as connection:
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
        self._attached: tuple[ObjectStore | None, float] = (None, 0.0)

    def session(self, store: ObjectStore) -> DuckDBPyConnection:
        """Return a session for one thread, with its own variables. The caller closes it."""
        with self._lock:
            if self._engine is None or self._process != os.getpid():
                self._engine, self._process, self._attached = _start(), os.getpid(), (None, 0.0)
            attached, since = self._attached
            if attached is not store or time.monotonic() - since > _CREDENTIAL_SECONDS:
                attach_store(self._engine, store)
                self._attached = (store, time.monotonic())
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
