"""Query engines over the store: each build has its own, documents on request share one per process."""

from __future__ import annotations

import atexit
import os
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final

import duckdb

from analytics.summaries.files import scratch_directory
from logs.compaction.engine import connect
from tenantadmin.objectstore.duck import attach_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from tenantadmin.objectstore import ObjectStore

#: After so long the store's credentials are asked for again; those of a role last ten minutes at least.
_ATTACHED_SECONDS: Final = 300
_SHARED_MEMORY: Final = "512MB"


@dataclass(frozen=True, slots=True)
class Engine:
    """A query engine that reads the store, and a directory for its files and ours."""

    connection: DuckDBPyConnection
    directory: Path


@contextmanager
def opened_engine(store: ObjectStore) -> Iterator[Engine]:
    """An engine of the caller's own.

    Raises:
        StoreError: the disk failed, or the engine could not read the store.
    """
    with (
        scratch_directory() as directory,
        connect(spill=directory / "spill") as connection,
    ):
        attach_store(connection, store)
        yield Engine(connection, directory)


@contextmanager
def lent_engine(store: ObjectStore) -> Iterator[Engine]:
    """A session of the engine that this process keeps: a new one takes longer than most documents.

    Raises:
        StoreError: the disk failed, or the engine could not read the store.
    """
    try:
        with scratch_directory() as directory, _kept.session(store) as connection:
            yield Engine(connection, directory)
    except (duckdb.FatalException, duckdb.InternalException):
        # It answers nothing any more.
        _kept.forget()
        raise


class _KeptEngine:
    """The engine of this process, made when it is first asked for."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._engine: DuckDBPyConnection | None = None
        self._process = 0
        self._attached: tuple[str, float] = ("", 0.0)

    def session(self, store: ObjectStore) -> DuckDBPyConnection:
        """A session of its own for one thread, to be closed; variables are the session's alone."""
        with self._lock:
            if self._engine is None or self._process != os.getpid():
                self._engine, self._process, self._attached = _start(), os.getpid(), ("", 0.0)
            url, since = self._attached
            if url != store.url or time.monotonic() - since > _ATTACHED_SECONDS:
                attach_store(self._engine, store)
                self._attached = (store.url, time.monotonic())
            return self._engine.cursor()

    def forget(self) -> None:
        """Have the next session start another engine."""
        with self._lock:
            self._engine = None


def _start() -> DuckDBPyConnection:
    stack = ExitStack()
    directory = stack.enter_context(scratch_directory())
    process = os.getpid()
    # A forked child leaves the directory to its parent.
    atexit.register(lambda: stack.close() if os.getpid() == process else None)
    engine = connect(spill=directory / "spill", memory_limit=_SHARED_MEMORY)
    # Memory stays with the queries: every document is remembered anyway.
    engine.execute("SET enable_external_file_cache = false")
    return engine


_kept: Final = _KeptEngine()
