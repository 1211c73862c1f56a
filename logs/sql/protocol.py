"""The interface of an engine for SQL over the log, and its errors: implement `Engine` to add another one."""

from __future__ import annotations

import os
import posixpath
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tenantadmin.lib.core.errors import ApiError, InternalError, ServiceBusy

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class DayFiles:
    """The Parquet files of one day (``YYYY-MM-DD``): absolute paths below a folder ``day=YYYY-MM-DD``.

    They hold the columns of `logs.columns.COLUMNS` in their order. ``day`` is read from the folder's name.
    """

    day: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogSource:
    """The log of one tenant: the files that a query may read.

    Attributes:
        days: in ascending order.
        fetch: if the files are not on this machine, copies the files at the given paths to it. The engine
            calls it with the files that a query needs, and passes on its errors.
        keys: the object keys of the files, in order, for an engine that has its own copies.
        has_positions: ``proxy_logs`` also has the columns ``_hour`` (the hour under which an entry counts)
            and ``_row`` (its place in the day), for statements of the service itself.
        sizes: the bytes of each day's files, in the order of ``days``, if they are known.
        engine: the engine that staff chose for the tenant: ``duckdb``, ``spark`` or ``auto``.

    Raises:
        ValueError: a path is not absolute or has odd segments, or is not of its day or of the tenant
            (``<tenant_id>`` must be one of its folders).
    """

    tenant_id: str
    days: tuple[DayFiles, ...]
    fetch: Callable[[Sequence[str]], None] | None = None
    keys: tuple[str, ...] = ()
    has_positions: bool = False
    sizes: tuple[int, ...] = ()
    engine: str = "duckdb"

    def __post_init__(self) -> None:
        for day in self.days:
            for file in day.files:
                parts = file.split("/")
                is_plain = parts[0] == "" and not {"", ".", ".."} & set(parts[1:]) and file.isprintable()
                if not is_plain or parts[-2:-1] != [f"day={day.day}"] or self.tenant_id not in parts:
                    raise ValueError(f"{file!r} is not a file of tenant {self.tenant_id} and day {day.day}")

    @property
    def folder(self) -> str:
        """The deepest folder that contains all files; empty if there are no files."""
        files = [file for day in self.days for file in day.files]
        if not files:
            return ""
        # All files share the common path of the first and the last in sorted order.
        return posixpath.commonpath([posixpath.dirname(min(files)), posixpath.dirname(max(files))])


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one query. Contract: Limits. ``seconds`` include the wait for a slot."""

    seconds: float = 15.0
    max_rows: int = 10_000
    max_bytes: int = 32 << 20
    max_columns: int = 2_000
    memory_bytes: int = 1 << 30
    threads: int = 2


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result: its name, unique in the result, and its DuckDB type (``BIGINT``)."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The rows of one query.

    Attributes:
        batches: at least one; a result without rows has one batch without rows, which has the types.
        truncated: the limits of rows or bytes cut the result.
        days: the days that the statement reads. The result is valid until one of them gets other files.
            None if it depends on the time or on random numbers.
        is_kept: it is the kept result of an earlier run.
        engine: the engine that made the rows, ``duckdb`` or ``spark``.
        elapsed_ms: how long the run took, as the audit records it. Engines do not know.
    """

    columns: tuple[ResultColumn, ...]
    batches: tuple[pa.RecordBatch, ...]
    row_count: int
    truncated: bool
    days: tuple[str, ...] | None = None
    is_kept: bool = False
    engine: str = "duckdb"
    elapsed_ms: int = 0

    @property
    def nbytes(self) -> int:
        """The bytes of the result in memory, for the audit."""
        return sum(batch.nbytes for batch in self.batches)


class Engine(Protocol):
    """Runs one statement over one tenant's log."""

    def execute(
        self,
        *,
        source: LogSource,
        statement: str,
        limits: Limits,
        cancellation: Cancellation | None = None,
    ) -> QueryResult:
        """Return the result of ``statement`` over ``source``.

        Raises:
            QueryRejected, QueryFailed, QueryTimeout: the author of the query can correct it (400).
            QueryCancelled: ``cancellation`` was used.
            EngineUnavailable: a fault of the service (500).
        """
        ...


class Cancellation:
    """Cancels a query from another thread."""

    def __init__(self) -> None:
        self._descriptor = os.eventfd(0, os.EFD_CLOEXEC)
        self._cancelled = threading.Event()
        # Close the descriptor only when no thread can wait for it any more.
        weakref.finalize(self, os.close, self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def cancel(self) -> None:
        """End the query that has this object, if it still runs."""
        self._cancelled.set()
        os.eventfd_write(self._descriptor, 1)

    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()


class QueryRejected(ApiError):
    """The statement is not allowed. It was not run."""

    status = 400
    code = "query_rejected"
    message = "Only one SELECT, or WITH … SELECT, over proxy_logs may run."


class QueryFailed(ApiError):
    """The engine refused the statement, or failed while it ran."""

    status = 400
    code = "query_failed"
    message = "The engine could not answer the query."


class QueryTimeout(ApiError):
    """The query took too long, including the wait for a slot."""

    status = 400
    code = "query_timeout"
    message = "The query took too long."


class QueryCancelled(ApiError):
    """The query was ended because its caller is gone. Only the audit shows this error."""

    status = 400
    code = "query_cancelled"
    message = "The connection was closed before the query ended."


class CancelledByStaff(QueryCancelled):
    """Staff ended the query on the admin site. The caller gets this error."""

    message = "The query was cancelled on the admin site of this service."


class QueryInterrupted(ServiceBusy):
    """Something outside of the query ended its process, such as the kernel for want of memory."""

    message = "The query was stopped from outside before it ended. Try it again."


class EngineUnavailable(InternalError):
    """A fault of the service: no query process started, or a file of the log cannot be read."""
