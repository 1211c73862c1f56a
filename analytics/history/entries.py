"""Write the statements of a history as raw logs, as a Gateway without rules would have logged them.

They become a tree ``logs/YYYY/MM/DD/HH/``, which `logs.importing` copies into the store. Its names and bytes
depend on the file and the choices alone, so that a second import of the same file changes nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from analytics.history.databricks import read_databricks
from analytics.history.postgresql import read_postgresql
from analytics.history.rows import BadHistory, Notes, Options, Source
from analytics.history.snowflake import read_snowflake
from analytics.history.standardize import Memory, Standardizer
from logs.definitions import FAILED, OWN_CACHE, PASSED
from logs.layout import HOUR_MS

if TYPE_CHECKING:
    from analytics.history.access import Accesses
    from analytics.history.rows import Reader, Rows
    from analytics.history.standardize import Facts

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
_encode: Final = msgspec.json.Encoder().encode


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
    hashes = Hashes(choices)
    known = _Statements(choices, hashes)
    tree = _Tree(directory, digest[:32])
    for rows in _READERS[choices.source](path, choices.options, notes):
        if max(rows.started_at) > now_ms + _AHEAD_MS:
            statement, began_at = next(
                one for one in zip(rows.id, rows.started_at, strict=True) if one[1] > now_ms + _AHEAD_MS
            )
            moment = datetime.fromtimestamp(began_at / 1000, UTC)
            raise BadHistory(
                f"{path.name}: statement {statement} began in the future, at {moment:%Y-%m-%d %H:%M} UTC. If "
                "its times are of another zone, name it: --timezone Europe/Berlin."
            )
        statements = known.find(rows)
        took = [ms if ms is None else min(max(ms, 0), _MAX_TIME_MS) for ms in rows.took_ms]
        read.add(_count(rows, statements, took))
        tree.add(rows.started_at, _make_entries(rows, choices.source, hashes, statements, took))
        yield read
    tree.flush()
    read.missing = {**(choices.accesses.missing if choices.accesses else {}), **notes.missing}
    yield read


class _Statement(msgspec.Struct, gc=False):
    """What an entry has of its statement, wherever it ran.

    Attributes:
        fields: the end of an object of JSON.
        unknown: its text, if sqlglot does not know what it is.
    """

    fields: bytes
    is_cut: bool = False
    unknown: str | None = None


class _Statements(Memory[tuple[Any, ...], _Statement]):
    """Says of each statement what its entry has, of equal ones once."""

    def __init__(self, choices: Choices, hashes: Hashes) -> None:
        super().__init__()
        self._standardize = Standardizer(choices.source)
        self._hashes = hashes
        self._accessed = choices.accesses.tables if choices.accesses else {}
        #: The fields before and after the literals.
        self._shapes: Memory[tuple[Any, ...], tuple[bytes, bytes]] = Memory()

    def find(self, rows: Rows) -> list[_Statement]:
        """Return what is said of each."""
        accessed = map(self._accessed.get, rows.id)
        where = (rows.kind, rows.database, rows.schema, rows.truncated, rows.parameters)
        return [*map(self.__getitem__, zip(rows.text, *where, accessed, strict=False))]

    def __missing__(self, key: tuple[Any, ...]) -> _Statement:
        return self.keep(key, self._describe(*key), text=key[0])

    def _describe(self, text: str, kind: str | None, *more: Any) -> _Statement:
        database, schema, truncated, parameters, accessed = more
        if truncated or len(text) > _MAX_TEXT:
            # Two statements may be equal up to there.
            return _Statement(b"," + _encode({"statementType": kind or None})[1:], is_cut=True)
        found = self._standardize(text, database=database or "", schema=schema or "", parameters=parameters)
        key = (found.text, found.facts, found.has_parameters, kind, accessed)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes.keep(key, self._make_shape(*key), text=found.text)
        begin, end = shape
        values = _encode(self._hashes.literals(found.values))
        return _Statement(begin + values + end, unknown=None if found.facts.known else found.text[:200])

    def _make_shape(self, text: str, facts: Facts, *more: Any) -> tuple[bytes, bytes]:
        has_parameters, kind, accessed = more
        text, tables = self._hashes.statement(text, facts.tables, accessed)
        begin = {"standardizedSql": text}
        end = {
            "statementType": kind or facts.kind,
            "isReadOnly": facts.reads,
            "isDataChange": facts.changes,
            "isDDL": facts.defines,
            "hasParameters": has_parameters,
            "hasNonDeterministicFunctions": facts.varies if facts.parsed else None,
            "tableCount": len(tables) if facts.parsed or accessed is not None else None,
            "tables": json.dumps(tables, ensure_ascii=False) if tables else None,
        }
        return b',%b,"parameterValues":' % _encode(begin)[1:-1], b"," + _encode(end)[1:]


#: The fields of an entry that are not of its statement alone.
_Entry = msgspec.defstruct(
    "_Entry",
    [
        *("timestamp", "userName", "responseSize", "responseTimeMs", "warehouseExecutionTimeMs"),
        *("cacheStatus", "logId", "queryId", "sessionId", "operationType"),
        *("adapterType", "serverHostname", "userAgent"),
    ],
    gc=False,
)


def _make_entries(
    rows: Rows, source: Source, hashes: Hashes, statements: Iterable[_Statement], took: Iterable[int | None]
) -> list[bytes]:
    """Return lines of JSON."""
    entries = map(
        _Entry,
        rows.started_at,
        map(hashes.user, rows.user),
        rows.size,
        rows.total_ms,
        took,
        [FAILED[0] if failed else PASSED[0] for failed in rows.failed],
        rows.id,
        repeat(None) if source is Source.POSTGRESQL else rows.id,
        rows.session,
        (OWN_CACHE if cached else None for cached in rows.from_result_cache),
        repeat(str(source)),
        rows.host,
        rows.client,
    )
    return [
        begin[:-1] + statement.fields
        for begin, statement in zip(map(_encode, entries), statements, strict=True)
    ]


def _count(rows: Rows, statements: Sequence[_Statement], took: Sequence[int | None]) -> Read:
    sizes: dict[str, dict[str, int]] = {}
    clusters: dict[str, int] = {}
    used = islice(zip(rows.host, rows.warehouse_size, rows.cluster, strict=False), len(rows.id))
    for (host, size, cluster), count in Counter(used).items():
        if host is not None and size is not None:
            sizes.setdefault(host, Counter())[size] += count
            clusters[host] = max(cluster, clusters.get(host, 1))
    unknown = [place for place, one in enumerate(statements) if one.unknown is not None]
    return Read(
        rows=len(rows.id),
        result_cache=sum(islice(rows.from_result_cache, len(rows.id))),
        failed=sum(rows.failed),
        truncated=sum(one.is_cut for one in statements),
        unparsed=len(unknown),
        unparsed_ms=sum(took[place] or 0 for place in unknown),
        first=min(rows.started_at),
        last=max(rows.started_at),
        sizes=sizes,
        clusters=clusters,
        examples=[statements[place].unknown or "" for place in unknown[:_MAX_EXAMPLES]],
    )


class Hashes:
    """Replaces names by hashes, the same ones by the same hash, as far as the choices say."""

    def __init__(self, choices: Choices) -> None:
        self._key = choices.key
        self._users = Hashed.USERS in choices.hashed
        self._tables = Hashed.TABLES in choices.hashed
        self._literals = Hashed.LITERALS in choices.hashed
        self._hash = lru_cache(100_000)(self._make)

    def user(self, name: str | None) -> str | None:
        return f"user-{self._hash(name)}" if name is not None and self._users else name

    def statement(
        self, text: str, named: tuple[str, ...], accessed: tuple[str, ...] | None
    ) -> tuple[str, tuple[str, ...]]:
        """Return a statement and its tables. The words of SQL and the names of columns stay.

        Args:
            named: the tables in the text.
            accessed: its tables in place of these, if they are known.
        """
        tables = named if accessed is None else accessed
        return self._replace_tables(text, named, tables) if self._tables else (text, tables)

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
        self._waiting: defaultdict[int, list[bytes]] = defaultdict(list)
        self._bytes = 0
        #: By hour, the number of its last file and how large it is.
        self._files: dict[int, tuple[int, int]] = {}

    def add(self, moments: Iterable[int], lines: Sequence[bytes]) -> None:
        for moment, line in zip(moments, lines, strict=True):
            self._waiting[moment // HOUR_MS].append(line)
        self._bytes += sum(map(len, lines))
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
