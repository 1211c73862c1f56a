"""Read the rollups of a day from local files, for a whole tenant or for one user.

This does not use DuckDB: planning a query would take longer than reading these small files.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.summaries.rollup_schema import HOURS, STATEMENTS, USERS
from analytics.summaries.text_file import TextFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from analytics.summaries.grouping import Array

_USER: Final = "user_name"


class DayTables:
    """The rollups of a day.

    Args:
        files: the file of each table in ``NAMES``.
        user: read only the rows of this user.
    """

    NAMES: Final = (HOURS, STATEMENTS, USERS)

    def __init__(self, files: Mapping[str, Path | str], *, user: str | None = None) -> None:
        self._files = files
        self.user = user

    def hours(self, columns: Sequence[str]) -> pa.Table:
        """Return the table hour x user, with ``user_name``. For one user, there is one row per hour."""
        return self._rows(HOURS, columns)

    def statements(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield statement records in the order of the document, a part at a time, with their text as ``sql``.

        A part has some thousand records and at most a few MiB of text. For one user, memory holds all
        records, but not all texts.
        """
        if self.user is None:
            yield from _row_groups(self._files[STATEMENTS], columns=["sql", *columns])
            return
        records = self._rows(USERS, columns).combine_chunks()
        statements = _uuid_bytes(records["statement"])
        with TextFile() as texts:
            for table in _row_groups(self._files[STATEMENTS], columns=["statement", "sql"]):
                keys = _uuid_bytes(table["statement"])
                is_wanted = pc.is_in(keys, value_set=statements)
                texts.add(keys.filter(is_wanted), table["sql"].combine_chunks().filter(is_wanted))
            start = 0
            for part in texts.read(statements):
                yield records.slice(start, len(part)).append_column("sql", part)
                start += len(part)

    def _rows(self, table: str, columns: Sequence[str]) -> pa.Table:
        """Return the rows of the user, or all rows. Only row groups that may have the user are read."""
        names = [*columns, _USER]
        tables = []
        with _open_parquet(self._files[table]) as file:
            for number in range(file.num_row_groups):
                if self.user is None:
                    tables.append(file.read_row_group(number, columns=names, use_threads=False))
                elif _may_contain(file.metadata.row_group(number), self.user):
                    group = file.read_row_group(number, columns=names, use_threads=False)
                    tables.append(group.filter(pc.equal(group[_USER], self.user)))
            return pa.concat_tables(tables) if tables else file.schema_arrow.empty_table().select(names)


def _row_groups(path: Path | str, *, columns: Sequence[str]) -> Iterator[pa.Table]:
    with _open_parquet(path) as file:
        for number in range(file.num_row_groups):
            yield file.read_row_group(number, columns=list(columns), use_threads=False)


@contextmanager
def _open_parquet(path: Path | str) -> Iterator[pq.ParquetFile]:
    # An open file is faster than a path, for which Arrow first looks for a file system.
    with pa.OSFile(str(path), "rb") as source, pq.ParquetFile(source) as file:
        yield file


def _may_contain(group: Any, user: str) -> bool:
    """Return False if the statistics of a row group show that it has no rows of ``user``."""
    for number in range(group.num_columns):
        column = group.column(number)
        if column.path_in_schema == _USER:
            statistics = column.statistics
            if statistics is None or not statistics.has_min_max:
                return True
            return bool(statistics.min <= user <= statistics.max)
    raise AssertionError("the table has a column of users")


def _uuid_bytes(column: Array) -> Array:
    """Return the 16 bytes of each UUID."""
    return column.combine_chunks().storage
