"""Join the Parquet files of a day's hours to files that follow each other in the order of the rows.

An hour's file has the rows of the objects under one hour's prefix, whatever their timestamps are. A span's
file has the rows whose timestamps are in one hour. There are 26 spans: before the day, its hours, after it.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from logs.compaction.convert import SCHEMA
from logs.compaction.engine import PREFIX_HOUR_COLUMN
from logs.compaction.previous import read_batches
from logs.compaction.writer import write_day
from logs.layout import HOUR_MS, day_start_ms
from logs.quoting import quote_text, quote_texts
from tenantadmin.arrow import pc

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import date
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from logs.compaction.writer import WrittenFile

#: The number of spans. Span 0 is before the day, span 25 after it.
SPANS: Final = 26
#: Rows of an hour in one other span whose digest is computed. Of more rows, every build counts as a change.
_MAX_DIGESTED: Final = 50_000


@dataclass(frozen=True, slots=True)
class Span:
    """The rows of an hour's file in one span: how many, and a digest over them; empty for the hour's own."""

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


def find_spans(path: Path, *, rows: int, day: date, hour: int) -> dict[int, Span]:
    """Return the spans of the rows of an hour's file.

    Raises:
        UnusableFile: the file is damaged.
    """
    counts: dict[int, int] = {}
    strays: dict[int, list[pa.RecordBatch]] = {}
    for batch in read_batches(path, rows=rows):
        for span, part in _split(batch, day):
            counts[span] = counts.get(span, 0) + part.num_rows
            if span != own_span(hour) and counts[span] <= _MAX_DIGESTED:
                strays.setdefault(span, []).append(part)
    return {
        span: Span(count, _digest(strays[span]) if span in strays and count <= _MAX_DIGESTED else "")
        for span, count in sorted(counts.items())
    }


def write_span(hours: Sequence[HourFile], *, span: int, day: date, directory: Path) -> WrittenFile | None:
    """Write the rows of one span to a Parquet file in ``directory``. Return None if there are none.

    The rows and their order are those that the file of the whole day would have.

    Args:
        hours: the files with rows in the span, in the order of hours.
    """
    source = directory / "span.arrow"
    with pa.OSFile(str(source), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
        for hour in hours:
            for batch in _read_span(hour, span=span, day=day):
                writer.write_batch(batch)
    written = write_day([], reused=source, target=directory / "day.parquet")
    source.unlink()
    return written


def _read_span(hour: HourFile, *, span: int, day: date) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(hour.path) as parquet:
        groups = [
            number
            for number in range(parquet.num_row_groups)
            if _may_have(parquet.metadata.row_group(number), span=span, day=day)
        ]
    for batch in read_batches(hour.path, rows=hour.rows, groups=groups):
        for number, part in _split(batch, day):
            if number != span:
                continue
            if hour.dropped is None:
                yield part
            else:
                is_dropped = pc.is_in(part.column("logId"), value_set=hour.dropped)
                yield part.filter(pc.invert(is_dropped))


def _may_have(group: pq.RowGroupMetaData, *, span: int, day: date) -> bool:
    """Return False if the statistics of a row group show that it has no row in the span."""
    statistics: Any = group.column(SCHEMA.get_field_index("timestamp")).statistics
    if statistics is None or not statistics.has_min_max or statistics.null_count:
        return True
    return _span_of(statistics.min, day) <= span <= _span_of(statistics.max, day)


def _split(batch: pa.RecordBatch, day: date) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of each span. The batch is in the order of a day's file."""
    if not batch.num_rows:
        return
    times = pc.fill_null(batch.column("timestamp"), 0)
    first, last = _span_of(times[0].as_py(), day), _span_of(times[-1].as_py(), day)
    values = [times[0].as_py()] if first == last else times.to_pylist()
    start = 0
    for span in range(first, last):
        end = bisect_left(values, day_start_ms(day) + span * HOUR_MS)
        if end > start:
            yield span, batch.slice(start, end - start)
        start = end
    yield last, batch.slice(start)


def _span_of(timestamp: int, day: date) -> int:
    return min(max((timestamp - day_start_ms(day)) // HOUR_MS + 1, 0), SPANS - 1)


def _digest(batches: Sequence[pa.RecordBatch]) -> str:
    sink = pa.BufferOutputStream()
    # As Parquet, because Arrow's own format has some bits of the rows beside a slice.
    pq.write_table(pa.Table.from_batches(batches), sink, compression="none", use_dictionary=False)
    return hashlib.sha256(sink.getvalue()).hexdigest()


def write_repeats(
    connection: DuckDBPyConnection,
    *,
    changed: Mapping[int, str],
    unchanged: Collection[str],
    before: tuple[str, Collection[int]] | None,
    target: Path,
) -> None:
    """Write which hours share a ``logId``: ``logId``, ``hour``, and ``kept``, the first of its hours.

    Args:
        changed: the addresses of the files of the hours that changed since ``before``.
        unchanged: those of the other hours.
        before: the address of the file that this function wrote before, and the hours of its rows that do not
            hold any more.
    """

    def ids(files: Collection[str]) -> str:
        if not files:
            return "SELECT NULL::VARCHAR AS logId, NULL::TINYINT AS hour WHERE false"
        source = f"read_parquet({quote_texts(files)}, hive_partitioning = false)"
        return f"SELECT logId, {PREFIX_HOUR_COLUMN} AS hour FROM {source} WHERE logId IS NOT NULL"  # noqa: S608

    new = ids(changed.values())
    old = ""
    if before is not None:
        address, hours = before
        gone = f"WHERE hour NOT IN ({', '.join(map(str, sorted(hours)))})" if hours else ""
        old = f"UNION SELECT logId, hour FROM read_parquet({quote_text(address)}) {gone}"  # noqa: S608
    connection.execute(
        f"""
        COPY (
            WITH ids AS (
                {new} UNION ALL
                SELECT * FROM ({ids(unchanged)}) WHERE logId IN (SELECT logId FROM ({new}))
            ),
            repeated AS (SELECT logId FROM ids GROUP BY logId HAVING count(*) > 1)
            SELECT logId, hour, min(hour) OVER (PARTITION BY logId) AS kept
            FROM (SELECT logId, hour FROM ids SEMI JOIN repeated USING (logId) {old})
            ORDER BY hour, logId
        ) TO {quote_text(target)} (FORMAT parquet)
        """  # noqa: S608
    )


def read_dropped(path: Path) -> pa.Table:
    """Return ``logId``, ``hour`` and ``kept`` of the rows that the day does not have, by hour."""
    table = pq.read_table(path)
    return table.filter(pc.greater(table["hour"], table["kept"]))
