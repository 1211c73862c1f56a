"""Records of files with columns: CSV, Parquet and JSON, also compressed by gzip, row after row.

Columns are named in any case. Those that are not asked for are ignored.
"""

from __future__ import annotations

import csv
import gzip
import re
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from analytics.history.rows import BadHistory
from logs.quoting import quote_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_GZIP: Final = b"\x1f\x8b"
_PARQUET: Final = b"PAR1"
#: The most bytes of one value of CSV and of one record of JSON.
_MAX_VALUE: Final = 64 << 20
_BATCH_ROWS: Final = 2_000
csv.field_size_limit(_MAX_VALUE)

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


def open_text(path: Path) -> IO[str]:
    """Open a text in UTF-8, with or without a byte order mark, also compressed."""
    if _is_gzip(path):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def read_records(
    path: Path, columns: Mapping[str, Column], *, what: str, missing: dict[str, str]
) -> Iterator[tuple[int, list[Any]]]:
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
    try:
        if head.startswith(_PARQUET):
            yield from _read_parquet(path, columns, what, missing)
        elif _begins_json(path):
            yield from _read_json(path, columns, what, missing)
        else:
            yield from _read_csv(path, columns, what, missing)
    except UnicodeDecodeError as error:
        raise BadHistory(f"{path.name} is not UTF-8 ({error.reason}). Export it as UTF-8.") from error
    except (EOFError, gzip.BadGzipFile) as error:
        raise BadHistory(f"{path.name}: gzip cannot unpack it: {error}. Copy it again.") from error


def _begins_json(path: Path) -> bool:
    with open_text(path) as stream:
        try:
            return stream.read(4096).lstrip()[:1] in {"{", "["}
        except (OSError, EOFError):
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
) -> Iterator[tuple[int, list[Any]]]:
    with unchanging(path), open_text(path) as stream:
        lines = csv.reader(_without_nul(stream, path), strict=True)
        try:
            header = next(lines, [])
            places = _places(path, header, columns, what, missing)
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
                yield number, [(record[place] or None) if place >= 0 else None for place in places]
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
) -> Iterator[tuple[int, list[Any]]]:
    try:
        with unchanging(path), pq.ParquetFile(path) as file:
            header = file.schema_arrow.names
            places = _places(path, header, columns, what, missing)
            number = 0
            wanted = sorted({header[place] for place in places if place >= 0})
            for batch in file.iter_batches(_BATCH_ROWS, columns=wanted):
                found = {name: batch.column(batch.schema.names.index(name)).to_pylist() for name in wanted}
                nothing = [None] * batch.num_rows
                rows = zip(
                    *(found[header[place]] if place >= 0 else nothing for place in places), strict=True
                )
                for values in rows:
                    number += 1
                    yield number, list(values)
    except (pa.ArrowException, OSError) as error:
        raise BadHistory(f"{path.name} is a damaged Parquet file: {error}. Export it again.") from error
    if not number:
        raise BadHistory(f"{path.name} has no rows. Choose days with statements.")


def _read_json(
    path: Path, columns: Mapping[str, Column], what: str, missing: dict[str, str]
) -> Iterator[tuple[int, list[Any]]]:
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
            batches = engine.sql(query).to_arrow_reader(_BATCH_ROWS)
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


_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?"
    r"\s*(Z|UTC|GMT|[+-]\d\d:?(?:\d\d)?|[A-Za-z][\w/+-]*)?"
)
_UTC_NAMES: Final = frozenset({"Z", "UTC", "GMT"})


class Clock:
    """Reads the times of one file, in which all times without an offset are in one zone."""

    def __init__(self, path: Path, timezone: str) -> None:
        """Set the zone of times that name none: an IANA name, or empty for UTC.

        Raises:
            BadHistory: there is no such zone.
        """
        self._name = path.name
        self._named = ""
        try:
            self._zone = ZoneInfo(timezone) if timezone else UTC
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise BadHistory(f"There is no time zone {timezone!r}; write it like Europe/Berlin.") from error
        self._is_chosen = bool(timezone)
        # An export need not be in the order of time: so many minutes are 45 days.
        self._read = lru_cache(65_536)(self._read_minute)

    def read(self, value: Any, place: str) -> int:
        """Return a time in epoch microseconds.

        Args:
            value: a text, a datetime, or epoch milliseconds.
            place: where it is, for errors.

        Raises:
            BadHistory: it is no time, or in a zone that is not clear.
        """
        if isinstance(value, datetime):
            moment = value if value.tzinfo else value.replace(tzinfo=self._zone)
            return int(moment.timestamp()) * 1_000_000 + moment.microsecond
        if isinstance(value, int):
            return value * 1_000
        match = _TIME.fullmatch(str(value).strip())
        if match is None:
            raise BadHistory(f"{self._name}, {place}: {str(value)[:60]!r} is no time as 2026-03-01 12:00.")
        day, clock, second, part, zone = match.groups(default="")
        try:
            seconds = self._read(day, clock, zone) + int(second or 0)
        except ValueError as error:
            raise BadHistory(f"{self._name}, {place}: {str(value)[:60]!r} is no time: {error}.") from error
        except _UnclearZone as error:
            raise BadHistory(f"{self._name}, {place}: {error}") from error
        return seconds * 1_000_000 + int(part.ljust(6, "0")[:6] or 0)

    def _read_minute(self, day: str, clock: str, zone: str) -> int:
        """Return the seconds at which a minute begins."""
        moment = datetime.fromisoformat(f"{day}T{clock}")
        if zone in _UTC_NAMES or not zone:
            self._require_same(zone or "no zone")
            return int(moment.replace(tzinfo=UTC if zone else self._zone).timestamp())
        if zone[0] in "+-":
            digits = zone[1:].replace(":", "").ljust(4, "0")
            return int(datetime.fromisoformat(f"{day}T{clock}{zone[0]}{digits[:2]}:{digits[2:]}").timestamp())
        if not self._is_chosen:
            raise _UnclearZone(
                f"the zone {zone!r} has several meanings. Say which one it is with --timezone Europe/Berlin."
            )
        moments = [moment.replace(tzinfo=self._zone, fold=fold) for fold in (0, 1)]
        found = next((one for one in moments if one.tzname() == zone), None)
        if found is None:
            raise _UnclearZone(
                f"the zone {zone!r} is not of --timezone {self._zone}. Give the files of each zone alone."
            )
        return int(found.timestamp())

    def _require_same(self, zone: str) -> None:
        """Refuse times of two zones, of which one has no name."""
        zone = zone if zone == "no zone" else "UTC"
        if self._named not in {"", zone} and not self._is_chosen:
            raise _UnclearZone(
                f"times with a zone and times without one ({self._named}, {zone}). Say with --timezone which "
                "zone those without are in."
            )
        self._named = zone


class _UnclearZone(Exception):
    """The message says which zone, and what to do."""


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
