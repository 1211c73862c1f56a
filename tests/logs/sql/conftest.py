"""A small log in Parquet, and one engine for all tests that need one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logs import columns
from logs.columns import SqlType
from logs.sql.local import LocalEngine
from logs.sql.protocol import DayFiles, Limits, LogSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

_ARROW = {
    SqlType.VARCHAR: pa.string(),
    SqlType.BIGINT: pa.int64(),
    SqlType.INTEGER: pa.int32(),
    SqlType.BOOLEAN: pa.bool_(),
}

#: Rows of the log by day; columns that a row does not name are null.
Days = "Mapping[str, Sequence[Mapping[str, object]]]"


def write_day(
    folder: Path, day: str, rows: Sequence[Mapping[str, object]], *, without: Sequence[str] = ()
) -> DayFiles:
    """Write one day as compaction does: the contract's columns in a folder ``day=…``, no column ``day``.

    ``without``: columns that there were not yet when the file was written. What else a row names becomes a
    column that the contract does not know.
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


@pytest.fixture
def make_log(tmp_path: Path) -> Callable[..., LogSource]:
    def make(days: Mapping[str, Sequence[Mapping[str, object]]], tenant: str = "tenant") -> LogSource:
        folder = tmp_path / tenant / "compacted"
        return LogSource(tenant, tuple(write_day(folder, day, rows) for day, rows in sorted(days.items())))

    return make


@pytest.fixture
def log(make_log: Callable[..., LogSource]) -> LogSource:
    """Three days, 2026-01-01 to 03, with 1, 2 and 3 rows of users u1, u2, u3."""
    return make_log(
        {
            f"2026-01-0{number}": [
                {
                    "timestamp": number * 1_000 + row,
                    "userName": f"u{row + 1}",
                    "responseSize": 0,
                    "responseTimeMs": 5,
                }
                for row in range(number)
            ]
            for number in (1, 2, 3)
        }
    )


@pytest.fixture(scope="session")
def engine() -> Iterator[LocalEngine]:
    engine = LocalEngine(slots=3, per_tenant=2, queue=24, warm=2, usual=Limits())
    yield engine
    engine.close()
