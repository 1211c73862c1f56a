"""One statement of a history, in the same words for all sources, and what is wrong with a history."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class BadHistory(Exception):
    """A file cannot be read as a history; the message names the place and what to do."""


#: The server of PostgreSQL's logs, which do not name it.
DEFAULT_HOST: Final = "postgresql"


class Source(StrEnum):
    """The warehouses whose histories can be read, as in ``adapterType``."""

    SNOWFLAKE = "snowflake"
    DATABRICKS = "databricks"
    POSTGRESQL = "postgresql"


class Row(NamedTuple):
    """A statement that ran. Times are in ms, `started_at` is epoch ms.

    Attributes:
        took_ms: how long the warehouse executed it; None if unknown or not executed.
        total_ms: how long its caller waited.
        host: the warehouse that ran it.
        database, schema: of the session. They complete shorter names of tables.
        warehouse_size, cluster: the size of the warehouse, and the number of its cluster.
        kind: the type of the statement as the source writes it; empty if it does not.
        failed: it failed or was cancelled.
        from_result_cache: the warehouse's own cache of results answered it.
        truncated: the source cut the text.
        parameters: the values of ``$1``, ``$2`` and so on; None if the source does not tell them.
    """

    id: str
    text: str
    started_at: int
    took_ms: int | None = None
    total_ms: int | None = None
    user: str | None = None
    session: str | None = None
    host: str | None = None
    database: str = ""
    schema: str = ""
    kind: str = ""
    client: str | None = None
    size: int | None = None
    warehouse_size: str | None = None
    cluster: int = 1
    failed: bool = False
    from_result_cache: bool = False
    truncated: bool = False
    parameters: Sequence[str | None] | None = None


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

    def __call__(self, path: Path, options: Options, notes: Notes, /) -> Iterator[Row]:
        """Yield the statements of a file in its order.

        Raises:
            BadHistory: the file is not a history of this source, or is damaged.
            OSError: the file cannot be read.
        """
