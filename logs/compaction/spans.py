"""Join the Parquet files of a day's hours to files that follow each other in the order of the rows.

An hour's file has the rows of the objects under one hour's prefix, whatever their timestamps are. A span's
file has the rows whose timestamps are in one hour. There are 26 spans: before the day, its hours, after it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from logs.compaction.build import collect_rows
from logs.compaction.convert import SCHEMA
from logs.compaction.engine import PREFIX_HOUR_COLUMN
from logs.compaction.previous import read_batches, refusing_damage
from logs.compaction.writer import write_day
from logs.layout import HOUR_MS, day_start_ms
from logs.quoting import quote_text, quote_texts, quote_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import date
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from logs.compaction.writer import WrittenFile

#: The number of spans. Span 0 is before the day, span 25 after it.
SPANS: Final = 26
#: The maximum rows of an hour in another span that get a digest. With more, every build counts as a change.
_MAX_DIGESTED: Final = 50_000
#: Up to this many ``logId``s are looked up one by one.
_MAX_LITERALS: Final = 100


@dataclass(frozen=True, slots=True)
class Span:
    """The rows of an hour's file in one span: their number, and their digest (empty for the own span)."""

    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class HourFile:
    """An hour's Parquet file. Rows are left out whose ``logId`` is in ``dropped``: an earlier hour has it."""

    path: Path
    rows: int
    dropped: pa.Array[Any] | None = None


def own_span(hour: int) -> int:
    """Return the span of the timestamps in an hour (0 to 23)."""
    return hour + 1


def span_bounds(day: date) -> list[int]:
    """Return the timestamps at which one span ends and the next begins."""
    return [day_start_ms(day) + hour * HOUR_MS for hour in range(SPANS - 1)]


def find_spans(path: Path, *, day: date, hour: int) -> dict[int, Span]:
    """Return the spans of the rows of an hour's file, which was written with `span_bounds`."""
    spans = {}
    with pq.ParquetFile(path) as parquet:
        for span, groups in groupby(_spans_of_groups(parquet.metadata, day), key=itemgetter(0)):
            numbers = [number for _, number in groups]
            rows = sum(parquet.metadata.row_group(number).num_rows for number in numbers)
            has_digest = span != own_span(hour) and rows <= _MAX_DIGESTED
            spans[span] = Span(rows, _digest(parquet.read_row_groups(numbers)) if has_digest else "")
    return spans


def write_span(hours: Sequence[HourFile], *, span: int, day: date, directory: Path) -> WrittenFile | None:
    """Write the rows of one span to a Parquet file in ``directory``. Return None if there are none.

    The rows and their order are the same as in a file of the whole day.

    Args:
        hours: the files with rows in the span, in the order of hours.

    Raises:
        UnusableFile: a file is damaged.
    """
    rows = collect_rows(
        (batch for hour in hours for batch in _read_span(hour, span=span, day=day)), directory
    )
    written = write_day([], reused=rows, target=directory / "day.parquet")
    if not isinstance(rows, list):
        rows.unlink()
    return written


def _read_span(hour: HourFile, *, span: int, day: date) -> Iterator[pa.RecordBatch]:
    with refusing_damage():
        metadata = pq.read_metadata(hour.path)
    groups = [number for other, number in _spans_of_groups(metadata, day) if other == span]
    for batch in read_batches(hour.path, rows=hour.rows, groups=groups):
        if hour.dropped is None:
            yield batch
        else:
            yield batch.filter(pc.invert(pc.is_in(batch.column("logId"), value_set=hour.dropped)))


def _spans_of_groups(metadata: pq.FileMetaData, day: date) -> Iterator[tuple[int, int]]:
    """Yield the span and the number of each row group. All rows of a row group are in one span."""
    for number in range(metadata.num_row_groups):
        column = metadata.row_group(number).column(SCHEMA.get_field_index("timestamp"))
        statistics: Any = column.statistics
        # Rows without a timestamp are at 0.
        timestamp = statistics.min if statistics.has_min_max else 0
        yield min(max((timestamp - day_start_ms(day)) // HOUR_MS + 1, 0), SPANS - 1), number


def _digest(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    # As Parquet, because Arrow's own format has some bits of the rows beside a slice.
    pq.write_table(table, sink, compression="none", use_dictionary=False)
    return hashlib.sha256(sink.getvalue()).hexdigest()


def write_repeats(
    connection: DuckDBPyConnection,
    *,
    changed: Collection[str],
    replaced: Collection[str],
    unchanged: Mapping[int, str],
    before: str | None,
    target: Path,
) -> None:
    """Write which hours share a ``logId``: ``logId``, ``hour``, and ``kept``, the first of its hours.

    Args:
        changed: the addresses of the files of the hours that changed.
        replaced: the addresses of the files that these replace, if they exist. Their ids are not looked up
            again.
        unchanged: the addresses of the other hours' files.
        before: the address of the file that this function wrote for ``replaced`` and ``unchanged``.
    """
    # All parts are quoted or numbers.
    present = _ids([*changed, *unchanged.values()])
    if replaced or unchanged:
        connection.execute(f"CREATE TEMP TABLE added AS {_ids(changed)} EXCEPT {_ids(replaced)}")
        present += f" AND logId IN ({_added(connection)})"
    earlier = ""
    if before is not None:
        source = f"FROM read_parquet({quote_text(before)})"
        hours = ", ".join(map(str, unchanged)) or "NULL"
        earlier = (
            f"UNION SELECT logId, hour {source} WHERE hour IN ({hours})"
            f" UNION SELECT logId, hour {source} SEMI JOIN ({_ids(changed)}) USING (logId, hour)"
        )
    connection.execute(
        f"""
        COPY (
            WITH ids AS ({present}),
            repeated AS (SELECT logId FROM ids GROUP BY logId HAVING count(*) > 1)
            SELECT logId, hour, min(hour) OVER (PARTITION BY logId) AS kept
            FROM (SELECT logId, hour FROM ids SEMI JOIN repeated USING (logId) {earlier})
            ORDER BY hour, logId
        ) TO {quote_text(target)} (FORMAT parquet)
        """  # noqa: S608
    )


def _ids(files: Collection[str]) -> str:
    """Return a query of the ``logId``s of these files, with the hours of their objects' prefixes."""
    if not files:
        return "SELECT NULL::VARCHAR AS logId, NULL::TINYINT AS hour WHERE false"
    source = f"read_parquet({quote_texts(files)}, hive_partitioning = false)"
    return f"SELECT logId, {PREFIX_HOUR_COLUMN} AS hour FROM {source} WHERE logId IS NOT NULL"  # noqa: S608


def _added(connection: DuckDBPyConnection) -> str:
    """Return the SQL of the added ``logId``s. Only for literals does DuckDB look into Bloom filters."""
    few = connection.execute(f"SELECT DISTINCT logId FROM added LIMIT {_MAX_LITERALS + 1}").fetchall()  # noqa: S608
    if len(few) > _MAX_LITERALS:
        return "SELECT logId FROM added"
    return ", ".join(quote_value(log_id) for (log_id,) in few) or "NULL"


def read_dropped(path: Path) -> pa.Table:
    """Return ``logId``, ``hour`` and ``kept`` of the rows that the day leaves out, by hour."""
    table = pq.read_table(path)
    return table.filter(pc.greater(table["hour"], table["kept"]))
