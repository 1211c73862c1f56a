"""What an engine of SQL over the log takes and gives. A second engine implements `Engine` and no more."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class DayFiles:
    """The Parquet files of one day (``YYYY-MM-DD``): absolute paths below a folder ``day=YYYY-MM-DD``.

    They hold the columns of `logs.columns.COLUMNS` in their order, and no ``day``: the folder's name is
    what ``day`` is read from.
    """

    day: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogSource:
    """The log of one tenant: what a query may read, to the file. ``days`` in ascending order.

    Where the files are not on this machine, ``fetch`` makes those exist that a query needs, called with
    their paths; what it raises passes through the engine. ``keys`` are the object keys of the files, in
    order, for an engine that has places of its own for them.

    Raises `ValueError` for a path that is not absolute and plain, not of its day or not of the tenant
    (``<tenant_id>`` is one of its folders).
    """

    tenant_id: str
    days: tuple[DayFiles, ...]
    fetch: Callable[[Sequence[str]], None] | None = None
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for day in self.days:
            for file in day.files:
                parts = file.split("/")
                plain = parts[0] == "" and not {"", ".", ".."} & set(parts[1:]) and file.isprintable()
                if not plain or parts[-2:-1] != [f"day={day.day}"] or self.tenant_id not in parts:
                    raise ValueError(f"{file!r} is no file of tenant {self.tenant_id} and day {day.day}")

    @property
    def folder(self) -> str:
        """The deepest folder above all files; empty where there is none."""
        files = [file for day in self.days for file in day.files]
        if not files:
            return ""
        # What the first and the last in order share, all share.
        return posixpath.commonpath([posixpath.dirname(min(files)), posixpath.dirname(max(files))])


@dataclass(frozen=True, slots=True)
class Limits:
    """What one query may use. Contract: Limits (15 seconds, waiting included; rows and bytes are capped)."""

    seconds: float = 15.0
    max_rows: int = 10_000
    max_bytes: int = 32 << 20
    max_columns: int = 2_000
    memory_bytes: int = 1 << 30
    threads: int = 2


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result: its name, unique in the result, and its engine type (``BIGINT``)."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The rows of one query, at most as many as the limits allow; ``truncated`` where that cut them.

    ``batches`` has one at least, of no rows where there are none: they hold the types.
    """

    columns: tuple[ResultColumn, ...]
    batches: tuple[pa.RecordBatch, ...]
    row_count: int
    truncated: bool
    elapsed_ms: int

    @property
    def nbytes(self) -> int:
        """Bytes of the result in memory, for the audit."""
        return sum(batch.nbytes for batch in self.batches)


class Engine(Protocol):
    """Runs one statement over one tenant's log."""

    def execute(self, *, source: LogSource, statement: str, limits: Limits) -> QueryResult:
        """Return the result of ``statement`` over ``source``.

        Raises `QueryRejected`, `QueryFailed` and `QueryTimeout` (all 400), `EngineUnavailable` (500).
        """
        ...
