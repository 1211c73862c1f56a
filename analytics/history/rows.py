"""The statements of a history, in the same words for all sources, and what is wrong with a history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import repeat
from pathlib import Path
from typing import Final, NamedTuple, Protocol


class BadHistory(Exception):
    """A file cannot be read as a history; the message names the place and what to do."""


#: The server of PostgreSQL's logs, which do not name it.
DEFAULT_HOST: Final = "postgresql"


class Source(StrEnum):
    """The warehouses whose histories can be read, as in ``adapterType``."""

    SNOWFLAKE = "snowflake"
    DATABRICKS = "databricks"
    POSTGRESQL = "postgresql"


class Rows(NamedTuple):
    """Statements that ran, by column, in the order of the file. Times are in ms, `started_at` is epoch ms.

    A column that a source does not have is endless.

    Attributes:
        took_ms: how long the warehouse executed it; None if unknown or not executed.
        total_ms: how long its caller waited.
        host: the warehouse that ran it.
        database, schema: of the session. They complete shorter names of tables.
        warehouse_size, cluster: the size of the warehouse, and the number of its cluster.
        kind: the type of the statement as the source writes it.
        failed: it failed or was cancelled.
        from_result_cache: the warehouse's own cache of results answered it.
        truncated: the source cut the text.
        parameters: the values of ``$1``, ``$2`` and so on; None if the source does not tell them.
    """

    id: Sequence[str]
    text: Sequence[str]
    started_at: Sequence[int]
    took_ms: Sequence[int | None]
    total_ms: Iterable[int | None]
    user: Iterable[str | None]
    session: Iterable[str | None]
    host: Iterable[str | None]
    client: Iterable[str | None]
    failed: Sequence[bool]
    database: Iterable[str | None] = repeat(None)
    schema: Iterable[str | None] = repeat(None)
    kind: Iterable[str | None] = repeat(None)
    size: Iterable[int | None] = repeat(None)
    warehouse_size: Iterable[str | None] = repeat(None)
    cluster: Iterable[int] = repeat(1)
    from_result_cache: Iterable[bool] = repeat(object=False)
    truncated: Iterable[bool] = repeat(object=False)
    parameters: Iterable[tuple[str | None, ...] | None] = repeat(None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How to read files.

    Attributes:
        timezone: the IANA name of the zone of times that name none; empty for UTC.
        log_line_prefix: PostgreSQL's setting, for logs in text.
        host: the server that PostgreSQL's files are of.
    """

    timezone: str = ""
    log_line_prefix: str = ""
    host: str = DEFAULT_HOST


@dataclass(slots=True)
class Notes:
    """What a reader found besides statements.

    Attributes:
        missing: by column that the file lacks, what cannot be said without it.
    """

    missing: dict[str, str] = field(default_factory=dict)


class Reader(Protocol):
    """Reads one file of a source."""

    def __call__(self, path: Path, options: Options, notes: Notes, /) -> Iterator[Rows]:
        """Yield the statements of a file, many at a time.

        Raises:
            BadHistory: the file is not a history of this source, or is damaged.
            OSError: the file cannot be read.
        """
