"""Write the statements of a history as raw logs, as a Gateway without rules would have logged them.

They become a tree ``logs/YYYY/MM/DD/HH/``, which `logs.importing` copies into the store. Its names and bytes
depend on the file and the choices alone, so that a second import of the same file changes nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from analytics.history.databricks import read_databricks
from analytics.history.postgresql import read_postgresql
from analytics.history.rows import BadHistory, Notes, Options, Source
from analytics.history.snowflake import read_snowflake
from analytics.history.standardize import Standardizer
from logs.definitions import FAILED, OWN_CACHE, PASSED
from logs.layout import HOUR_MS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from analytics.history.access import Accesses
    from analytics.history.rows import Reader, Row
    from analytics.history.standardize import Standardized

_READERS: Final[dict[Source, Reader]] = {
    Source.SNOWFLAKE: read_snowflake,
    Source.DATABRICKS: read_databricks,
    Source.POSTGRESQL: read_postgresql,
}
#: Raise it when the same file gives other entries. Then it is imported again.
_VERSION: Final = 4
#: Bytes that wait in memory, and bytes of an object.
_WAITING: Final = 32 << 20
_OBJECT: Final = 64 << 20
#: A longer text is no statement that a cache would keep, and an entry has a limit.
_MAX_TEXT: Final = 1 << 20
_MAX_TIME_MS: Final = 2**31 - 1
_MAX_UNPARSED: Final = 0.4
_MINUTE_MS: Final = 60_000
#: How far ahead the clocks of the warehouse may be.
_AHEAD_MS: Final = 5 * _MINUTE_MS
_MAX_EXAMPLES: Final = 3


class Hashed(StrEnum):
    """What is replaced by a hash before anything is stored."""

    USERS = "users"
    TABLES = "tables"
    LITERALS = "literals"


@dataclass(frozen=True, kw_only=True, slots=True)
class Choices:
    """How a file becomes entries.

    Attributes:
        key: of the hashes. The caller keeps it.
        accesses: which tables the statements accessed, if a file says so.
    """

    source: Source
    options: Options = field(default_factory=Options)
    hashed: frozenset[Hashed] = frozenset()
    key: bytes = b""
    accesses: Accesses | None = field(default=None, repr=False)

    def digest(self, path: Path) -> str:
        """Return a digest of a file and these choices."""
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256")
        if self.accesses is not None:
            found.update(self.accesses.digest)
        own = [_VERSION, self.source, self.options, sorted(self.hashed), hashlib.sha256(self.key).hexdigest()]
        found.update(msgspec.json.encode(own))
        return found.hexdigest()


class Read(msgspec.Struct, rename="camel"):
    """What was read. Times are epoch ms.

    Attributes:
        truncated: statements whose text the source cut.
        unparsed: statements that sqlglot cannot parse, and ``unparsed_ms`` their time in the warehouse.
        sizes: by warehouse, how many statements each size of it ran.
        clusters: by warehouse, the most clusters.
        missing: by column that a file lacks, what cannot be said without it.
    """

    rows: int = 0
    result_cache: int = 0
    failed: int = 0
    truncated: int = 0
    unparsed: int = 0
    unparsed_ms: int = 0
    first: int | None = None
    last: int | None = None
    sizes: dict[str, dict[str, int]] = {}
    clusters: dict[str, int] = {}
    missing: dict[str, str] = {}
    examples: list[str] = []

    def count(self, row: Row) -> None:
        """Count a statement."""
        self.rows += 1
        self.result_cache += row.from_result_cache
        self.failed += row.failed
        if self.first is None or row.started_at < self.first:
            self.first = row.started_at
        if self.last is None or row.started_at > self.last:
            self.last = row.started_at
        if row.host is not None and row.warehouse_size is not None:
            sizes = self.sizes.setdefault(row.host, {})
            sizes[row.warehouse_size] = sizes.get(row.warehouse_size, 0) + 1
            self.clusters[row.host] = max(row.cluster, self.clusters.get(row.host, 1))

    def add(self, other: Read) -> None:
        """Count what another file has, too."""
        for name in ("rows", "result_cache", "failed", "truncated", "unparsed", "unparsed_ms"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        moments = [moment for moment in (self.first, other.first) if moment is not None]
        self.first = min(moments, default=None)
        moments = [moment for moment in (self.last, other.last) if moment is not None]
        self.last = max(moments, default=None)
        for host, sizes in other.sizes.items():
            own = self.sizes.setdefault(host, {})
            for size, count in sizes.items():
                own[size] = own.get(size, 0) + count
        for host, number in other.clusters.items():
            self.clusters[host] = max(number, self.clusters.get(host, 1))
        self.missing = {**self.missing, **other.missing}
        self.examples = [*self.examples, *other.examples][:_MAX_EXAMPLES]

    def require_sound(self, source: Source) -> None:
        """Refuse what cannot be assessed.

        Raises:
            BadHistory: there is no statement, too many cannot be parsed, or all ran in one minute.
        """
        if not self.rows:
            hint = "Set log_min_duration_statement = 0 for some days" if source is Source.POSTGRESQL else ""
            raise BadHistory(f"There is no statement in the files. {hint or 'Choose other days'}.")
        if self.unparsed >= _MAX_UNPARSED * self.rows:
            raise BadHistory(
                f"{self.unparsed} of {self.rows} statements cannot be parsed as SQL of {source}, such as "
                f"{self.examples[0][:80]!r}. Is --from {source} right, and is the column of texts whole?"
            )
        if self.first is not None and self.last is not None and self.last - self.first < _MINUTE_MS:
            moment = datetime.fromtimestamp(self.first / 1000, UTC)
            raise BadHistory(
                f"All {self.rows} statements began within one minute, {moment:%Y-%m-%d %H:%M}. Export the "
                "time when each began, and some days of them."
            )


def write_entries(
    path: Path, choices: Choices, *, digest: str, directory: Path, now_ms: int
) -> Iterator[Read]:
    """Write the entries of a file below ``directory``. Yield what was read, again and again, and at the end.

    ``digest`` is that of the choices and the file.

    Raises:
        BadHistory: the file is no history of the source, or damaged.
        OSError: a file cannot be read or written.
    """
    notes, read = Notes(), Read()
    standardize = Standardizer(choices.source)
    hashes = Hashes(choices)
    tree = _Tree(directory, digest[:32])
    encode = msgspec.json.Encoder().encode
    accessed = choices.accesses.tables if choices.accesses else {}
    for row in _READERS[choices.source](path, choices.options, notes):
        if row.started_at > now_ms + _AHEAD_MS:
            moment = datetime.fromtimestamp(row.started_at / 1000, UTC)
            raise BadHistory(
                f"{path.name}: statement {row.id} began in the future, at {moment:%Y-%m-%d %H:%M} UTC. If "
                "its times are of another zone, name it: --timezone Europe/Berlin."
            )
        tree.add(row.started_at, encode(_make_entry(row, choices, standardize, hashes, accessed, read)))
        if read.rows % 10_000 == 0:
            yield read
    tree.flush()
    read.missing = {**(choices.accesses.missing if choices.accesses else {}), **notes.missing}
    yield read


def _make_entry(
    row: Row,
    choices: Choices,
    standardize: Standardizer,
    hashes: Hashes,
    accessed: Mapping[str, tuple[str, ...]],
    read: Read,
) -> dict[str, Any]:
    read.count(row)
    took = None if row.took_ms is None else min(max(row.took_ms, 0), _MAX_TIME_MS)
    entry: dict[str, Any] = {
        "timestamp": row.started_at,
        "userName": hashes.user(row.user),
        "responseSize": row.size,
        "responseTimeMs": row.total_ms,
        "warehouseExecutionTimeMs": took,
        "cacheStatus": FAILED[0] if row.failed else PASSED[0],
        "logId": row.id,
        "queryId": row.id if choices.source is not Source.POSTGRESQL else None,
        "sessionId": row.session,
        "operationType": OWN_CACHE if row.from_result_cache else None,
        "adapterType": str(choices.source),
        "serverHostname": row.host,
        "userAgent": row.client,
    }
    if row.truncated or len(row.text) > _MAX_TEXT:
        # Two statements may be equal up to there.
        read.truncated += 1
        entry["statementType"] = row.kind or None
        return entry
    found = standardize(row.text, database=row.database, schema=row.schema, parameters=row.parameters)
    facts = found.facts
    if not facts.known:
        read.unparsed += 1
        read.unparsed_ms += took or 0
        if len(read.examples) < _MAX_EXAMPLES:
            read.examples.append(found.text[:200])
    known = accessed.get(row.id)
    text, tables = hashes.statement(found, facts.tables if known is None else known)
    entry |= {
        "standardizedSql": text,
        "parameterValues": hashes.literals(found.values),
        "statementType": row.kind or facts.kind,
        "isReadOnly": facts.reads,
        "isDataChange": facts.changes,
        "isDDL": facts.defines,
        "hasParameters": found.has_parameters,
        "hasNonDeterministicFunctions": facts.varies if facts.parsed else None,
        "tableCount": len(tables) if facts.parsed or known is not None else None,
        "tables": _as_json(tables) if tables else None,
    }
    return entry


@lru_cache(10_000)
def _as_json(names: tuple[str, ...]) -> str:
    return json.dumps(names, ensure_ascii=False)


class Hashes:
    """Replaces names by hashes, the same ones by the same hash, as far as the choices say."""

    def __init__(self, choices: Choices) -> None:
        self._key = choices.key
        self._users = Hashed.USERS in choices.hashed
        self._tables = Hashed.TABLES in choices.hashed
        self._literals = Hashed.LITERALS in choices.hashed
        self._hash = lru_cache(100_000)(self._make)
        self._statement = lru_cache(20_000)(self._replace_tables)

    def user(self, name: str | None) -> str | None:
        return f"user-{self._hash(name)}" if name is not None and self._users else name

    def statement(self, found: Standardized, tables: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Return a statement and its tables. The words of SQL and the names of columns stay."""
        if not self._tables:
            return found.text, tables
        return self._statement(found.text, found.facts.tables, tables)

    def literals(self, values: str) -> str:
        """Return the literals as JSON. Equal ones stay equal."""
        if not self._literals or values == "[]":
            return values
        return json.dumps([self._hash(json.dumps(value)) for value in json.loads(values, parse_float=str)])

    def _make(self, text: str) -> str:
        return hmac.new(self._key, text.encode(), "sha256").hexdigest()[:16]

    def _replace_tables(
        self, text: str, named: tuple[str, ...], tables: tuple[str, ...]
    ) -> tuple[str, tuple[str, ...]]:
        parts = {part for table in (*named, *tables) for part in table.split(".") if part}
        if not parts:
            return text, tables
        alternatives = "|".join(map(re.escape, sorted(parts, key=len, reverse=True)))
        hashed = re.sub(
            rf"(?<![\w$])(?:{alternatives})(?![\w$])",
            lambda match: f"t_{self._hash(match[0].lower())}",
            text,
            flags=re.IGNORECASE,
        )
        names = tuple(
            ".".join(f"t_{self._hash(part.lower())}" if part else "" for part in table.split("."))
            for table in tables
        )
        return hashed, names


class _Tree:
    """Appends lines to the files of the hours of their times."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory, self._name = directory / "logs", name
        self._waiting: dict[int, list[bytes]] = {}
        self._bytes = 0
        #: By hour, the number of its last file and how large it is.
        self._files: dict[int, tuple[int, int]] = {}

    def add(self, moment: int, line: bytes) -> None:
        self._waiting.setdefault(moment // HOUR_MS, []).append(line)
        self._bytes += len(line)
        if self._bytes > _WAITING:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        for hour, lines in self._waiting.items():
            body = b"\n".join(lines) + b"\n"
            number, size = self._files.get(hour, (0, 0))
            if size and size + len(body) > _OBJECT:
                number, size = number + 1, 0
            self._files[hour] = number, size + len(body)
            folder = self._directory / f"{datetime.fromtimestamp(hour * HOUR_MS / 1000, UTC):%Y/%m/%d/%H}"
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / f"{self._name}-{number}.json").open("ab") as stream:
                stream.write(body)
        self._waiting.clear()
        self._bytes = 0
