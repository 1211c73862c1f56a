"""Records of files with columns: CSV, Parquet and JSON, also compressed by gzip, row after row.

Columns are named in any case. Those that are not asked for are ignored.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from types import NoneType
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from analytics.history.rows import BadHistory
from logs.quoting import quote_text

if TYPE_CHECKING:
    from analytics.history.rows import Rows

_GZIP: Final = b"\x1f\x8b"
_GZIP_ERRORS: Final = (EOFError, gzip.BadGzipFile, zlib.error)
_PARQUET: Final = b"PAR1"
#: The most bytes of one value of CSV and of one record of JSON.
_MAX_VALUE: Final = 64 << 20
#: Rows that Arrow reads at a time.
_ARROW_ROWS: Final = 2_000
#: Rows that are read by column at a time, and the characters of their texts. With more rows, Python's
#: garbage collector would search all of them.
_BATCH_ROWS: Final = 250
_BATCH_CHARS: Final = 16 << 20
csv.field_size_limit(_MAX_VALUE)

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")

#: A column that only this source has, to say what a file looks like.
_MARKS: Final = {
    "query_text": "Snowflake's QUERY_HISTORY, which --from snowflake reads",
    "statement_text": "Databricks' system.query.history, which --from databricks reads",
    "error_severity": "a log of PostgreSQL in JSON, which --from postgresql reads",
    "credits_used": "Snowflake's WAREHOUSE_METERING_HISTORY",
    "usage_quantity": "Databricks' system.billing.usage",
    "standardizedsql": "a log of the Gateway, which manage.py import_logs reads",
    "queryid": "pg_stat_statements, which has no single statements: give a log of PostgreSQL",
}
_SEVERITIES: Final = frozenset({"LOG", "ERROR", "FATAL", "PANIC", "WARNING", "NOTICE", "INFO", "DEBUG"})
#: Newer releases have more.
CSVLOG_COLUMNS: Final = 23


def looks_like(names: Sequence[str]) -> str:
    """Return what a file with these columns, or this line, looks like: a sentence after a space, or ''."""
    known = {name.strip().lower() for name in names}
    found = next((mark for key, mark in _MARKS.items() if key in known), "")
    if not found and len(names) >= CSVLOG_COLUMNS and _SEVERITIES & {*names}:
        found = "PostgreSQL's csvlog, which --from postgresql reads"
    return f" It looks like {found}." if found else ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column to read.

    Attributes:
        names: how sources name it, in lower case; the first one that a file has is read.
        lost: what cannot be said without it; empty if it is required.
    """

    names: tuple[str, ...]
    lost: str = ""


@contextmanager
def unchanging(path: Path) -> Iterator[None]:
    """Refuse a file that changes while it is read.

    Raises:
        BadHistory: it did.
    """
    before = path.stat()
    yield
    after = path.stat()
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise BadHistory(f"{path.name} changed while it was read. Copy it, and give the copy.")


@contextmanager
def refusing_damage(path: Path) -> Iterator[None]:
    """Refuse a file that cannot be unpacked, or is not UTF-8.

    Raises:
        BadHistory: it is.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        raise BadHistory(
            f"{path.name} is not UTF-8 ({error.reason}). Export it as UTF-8, or convert it with iconv."
        ) from error
    except _GZIP_ERRORS as error:
        raise BadHistory(f"{path.name}: gzip cannot unpack it: {error}. Copy it again.") from error


def open_text(path: Path) -> IO[str]:
    """Open a text in UTF-8, with or without a byte order mark, also compressed."""
    if _is_gzip(path):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def read_records(
    path: Path, columns: Mapping[str, Column], *, what: str, missing: dict[str, str]
) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield the number of each record, from 1, and its values, in the order of ``columns``.

    Values of CSV are texts, others as the file has them. Absent ones are None; an empty text of CSV is, too.

    Args:
        what: the source, for errors.
        missing: gets what columns that the file lacks were good for, by name.

    Raises:
        BadHistory: the file is empty, damaged, of another kind, or lacks a required column.
    """
    with path.open("rb") as stream:
        head = stream.read(64)
    if not head:
        raise BadHistory(f"{path.name} is empty. Export the history again.")
    with refusing_damage(path):
        if head.startswith(_PARQUET):
            yield from _read_parquet(path, columns, what, missing)
        elif _begins_json(path):
            yield from _read_json(path, columns, what, missing)
        else:
            yield from _read_csv(path, columns, what, missing)


def _begins_json(path: Path) -> bool:
    with open_text(path) as stream:
        try:
            return stream.read(4096).lstrip()[:1] in {"{", "["}
        except _GZIP_ERRORS:
            return False


def _places(
    path: Path, header: Sequence[str], columns: Mapping[str, Column], what: str, missing: dict[str, str]
) -> list[int]:
    """Return where each column is, -1 for those that are absent.

    Raises:
        BadHistory: a required column is absent.
    """
    present = {name.strip().lower(): place for place, name in reversed(list(enumerate(header)))}
    places = [
        next((present[name] for name in column.names if name in present), -1) for column in columns.values()
    ]
    for column, place in zip(columns.values(), places, strict=True):
        if place < 0 and not column.lost:
            raise BadHistory(
                f"{path.name} has no column {column.names[0].upper()}, so it is no history of {what}."
                f"{looks_like(header)} Its columns: {', '.join(header)[:300]}"
            )
        if place < 0:
            missing[column.names[0]] = column.lost
    return places


def _read_csv(
    path: Path, columns: Mapping[str, Column], what: str, missing: dict[str, str]
) -> Iterator[tuple[int, Sequence[Any]]]:
    with unchanging(path), open_text(path) as stream:
        lines = csv.reader(_without_nul(stream, path), strict=True)
        try:
            header = next(lines, [])
            places = _places(path, header, columns, what, missing)
            pick = itemgetter(*places)
            number = 0
            for number, record in enumerate(lines, start=1):
                if len(record) != len(header):
                    if not record:
                        continue
                    raise BadHistory(
                        f"{path.name}, line {lines.line_num}: {len(record)} values where the header has "
                        f"{len(header)} columns. A quote in it is not doubled, or not closed: export the "
                        "file again, with values in double quotes."
                    )
                # Absent columns are at the place -1.
                record.append("")
                values = pick(record)
                yield number, [value or None for value in values] if "" in values else values
        except csv.Error as error:
            raise BadHistory(
                f"{path.name}, line {lines.line_num}: {error}. Its quotes break there: export the file again."
            ) from error
    if not number:
        raise BadHistory(f"{path.name} has a header and no rows. Choose days with statements.")


def _without_nul(lines: Iterator[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if "\0" in line:
            raise BadHistory(
                f"{path.name}, line {number}: it has the character NUL, so the file is damaged or is UTF-16. "
                "Export it as UTF-8."
            )
        yield line


def _read_parquet(
    path: Path, columns: Mapping[str, Column], what: str, missing: dict[str, str]
) -> Iterator[tuple[int, Sequence[Any]]]:
    try:
        with unchanging(path), pq.ParquetFile(path) as file:
            header = file.schema_arrow.names
            places = _places(path, header, columns, what, missing)
            number = 0
            wanted = sorted({header[place] for place in places if place >= 0})
            for batch in file.iter_batches(_ARROW_ROWS, columns=wanted):
                found = {name: _as_list(batch.column(batch.schema.names.index(name))) for name in wanted}
                nothing = [None] * batch.num_rows
                rows = zip(
                    *(found[header[place]] if place >= 0 else nothing for place in places), strict=True
                )
                for number, values in enumerate(rows, start=number + 1):  # noqa: B020
                    yield number, values
    except (pa.ArrowException, OSError) as error:
        raise BadHistory(f"{path.name} is a damaged Parquet file: {error}. Export it again.") from error
    if not number:
        raise BadHistory(f"{path.name} has no rows. Choose days with statements.")


def _as_list(column: pa.Array[Any]) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        # A datetime has no nanoseconds.
        column = column.cast(pa.timestamp("us", kind.tz), safe=False)
    return column.to_pylist()


def _read_json(
    path: Path, columns: Mapping[str, Column], what: str, missing: dict[str, str]
) -> Iterator[tuple[int, Sequence[Any]]]:
    """Read lines of objects, or an array of them, by DuckDB."""
    decode = msgspec.json.Decoder(float_hook=str).decode
    number = 0

    @lru_cache(1_000)
    def find_names(names: tuple[str, ...]) -> Sequence[str | None]:
        """Return the name of each column in records with these names."""
        lower = {name.lower(): name for name in names}
        return [
            next((lower[name] for name in column.names if name in lower), None) for column in columns.values()
        ]

    with unchanging(path), duckdb.connect(config={"memory_limit": "1GB", "threads": 1}) as engine:
        compression = "gzip" if _is_gzip(path) else "uncompressed"
        query = (
            f"SELECT json FROM read_json_objects({quote_text(str(path))}, format = 'auto', "  # noqa: S608
            f"compression = '{compression}', maximum_object_size = {_MAX_VALUE})"
        )
        try:
            batches = engine.sql(query).to_arrow_reader(_ARROW_ROWS)
            for batch in batches:
                for text in batch.column(0).to_pylist():
                    number += 1
                    record = decode(str(text))
                    if not isinstance(record, dict):
                        raise BadHistory(
                            f"{path.name}, record {number}: a {type(record).__name__}, no object."
                        )
                    if number == 1:
                        # A record may leave out what is null, so the first says only what it has.
                        required = {key: column for key, column in columns.items() if not column.lost}
                        _places(path, [*record], required, what, missing)
                    names = find_names(tuple(record))
                    yield number, [None if name is None else record[name] for name in names]
        except (duckdb.Error, msgspec.DecodeError) as error:
            raise BadHistory(f"{path.name}: {str(error)[:300]}. Export it again.") from error
    if not number:
        raise BadHistory(f"{path.name} has no rows. Choose days with statements.")


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(2) == _GZIP


def in_batches(
    items: Iterable[tuple[_Item, Sequence[Any]]],
    make: Callable[[Sequence[_Item], Iterable[Sequence[Any]]], Rows],
) -> Iterator[Rows]:
    """Make statements of many items at a time, by column.

    An error names the first bad item. The statements of the items before it are yielded first.

    Args:
        items: pairs. The second begins with a text, which may be long.
        make: gets what the pairs have first, and second.
    """
    for batch in _batches(items):
        firsts, seconds = zip(*batch, strict=True)
        try:
            rows = make(firsts, seconds)
        except BadHistory:
            for first, second in batch:
                yield make([first], [second])
        else:
            yield rows


def _batches(items: Iterable[tuple[_Item, Sequence[Any]]]) -> Iterator[list[tuple[_Item, Sequence[Any]]]]:
    batch: list[tuple[_Item, Sequence[Any]]] = []
    size = 0
    try:
        for item in items:
            batch.append(item)
            size += len(item[1][0] or "")
            if len(batch) == _BATCH_ROWS or size > _BATCH_CHARS:
                yield batch
                batch, size = [], 0
    except Exception:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def read_each(read: Callable[[Any], _Found], column: Sequence[Any]) -> list[_Found]:
    """Read a column with few values."""
    try:
        found = {value: read(value) for value in {*column}}
    except TypeError:
        # An object or a list in JSON.
        return [*map(read, column)]
    return [found[value] for value in column]


def read_counts(column: Sequence[Any]) -> Sequence[int | None]:
    """Return `read_count` of each value."""
    types = {*map(type, column)}
    if types == {str} and all(map(str.isdecimal, column)):
        return [*map(int, column)]
    return column if types <= {int, NoneType} else [*map(read_count, column)]


def read_executed(
    column: Sequence[Any], failed: Iterable[bool], cached: Iterable[bool]
) -> Sequence[int | None]:
    """Return the milliseconds of those that were executed to their end."""
    counts = zip(read_counts(column), failed, cached, strict=True)
    return [None if has_failed or is_cached else count for count, has_failed, is_cached in counts]


def read_texts(column: Sequence[Any]) -> Sequence[str | None]:
    """Return `read_text` of each value."""
    if {*map(type, column)} <= {str, NoneType} and "" not in column:
        return column
    return [*map(read_text, column)]


def read_ids(column: Sequence[Any], path: Path, numbers: Iterable[int]) -> Sequence[str]:
    """Return the ids of statements. One that has none gets its place."""
    pairs = zip(read_texts(column), numbers, strict=True)
    return [found or f"{path.name}-{number}" for found, number in pairs]


def read_count(value: Any) -> int | None:
    """Return a whole number of a column, rounded; None if it is none."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    try:
        return round(float(value))
    except (ValueError, OverflowError, TypeError):
        return None


def read_text(value: Any) -> str | None:
    """Return a text of a column; None if it is null or empty."""
    return None if value is None or value == "" else str(value)


def read_flag(value: Any) -> bool:
    """Return whether a column says yes."""
    return value is True or str(value).lower() in {"true", "t", "1", "yes"}
