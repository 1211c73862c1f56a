"""Write days of a log in Parquet, as compaction does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from logs import columns
from logs.columns import SqlType
from logs.sql.protocol import DayFiles

_ARROW = {
    SqlType.VARCHAR: pa.string(),
    SqlType.BIGINT: pa.int64(),
    SqlType.INTEGER: pa.int32(),
    SqlType.BOOLEAN: pa.bool_(),
}


def write_day(
    folder: Path, day: str, rows: Sequence[Mapping[str, object]], *, without: Sequence[str] = ()
) -> DayFiles:
    """Write one day's file. Columns that a row does not name are null.

    A name that is not in the contract becomes an extra column.

    Args:
        without: columns that the file lacks, as files written by older versions do.
    """
    types = {
        **{name: pa.string() for row in rows for name in row},
        **{column.name: _ARROW[column.type] for column in columns.COLUMNS if column.name not in without},
    }
    table = pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in types.items()})
    path = folder / f"day={day}" / "build.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(table, path)
    return DayFiles(day, (str(path),))
