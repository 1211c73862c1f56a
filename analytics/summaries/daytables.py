"""The tables of a day's rollups in local files, of a whole tenant or of one user. Needs no query engine.

A query engine takes longer to plan a query over these small files than reading them takes.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.summaries.rollup_tables import HOURS, STATEMENTS, USERS
from analytics.summaries.textfile import TextFile
from tenantadmin.arrow import pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from analytics.summaries.grouping import Array

_USER: Final = "user_name"


class DayTables:
    """The rollups of a day.

    Args:
        files: the file of each table.
        user: rows of that user alone.
    """

    #: The tables that are read.
    NAMES: Final = (HOURS, STATEMENTS, USERS)

    def __init__(self, files: Mapping[str, Path | str], *, user: str | None = None) -> None:
        self._files = files
        self.user = user

    def hours(self, columns: Sequence[str]) -> pa.Table:
        """Hour x user, with the user as ``user_name``; of one user each hour once."""
        return self._own(HOURS, columns)

    def statements(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Records in the document's order, some at a time, with their text as ``sql``.

        Held at a time: some thousand records, of at most some MiB of text; of one user the records without
        their texts beside them.
        """
        if self.user is None:
            yield from _tables(self._files[STATEMENTS], columns=["sql", *columns])
            return
        own = self._own(USERS, columns).combine_chunks()
        statements = _bytes(own["statement"])
        with TextFile() as texts:
            for table in _tables(self._files[STATEMENTS], columns=["statement", "sql"]):
                keys = _bytes(table["statement"])
                is_own = pc.is_in(keys, value_set=statements)
                texts.add(keys.filter(is_own), table["sql"].combine_chunks().filter(is_own))
            start = 0
            for part in texts.read(statements):
                yield own.slice(start, len(part)).append_column("sql", part)
                start += len(part)

    def _own(self, table: str, columns: Sequence[str]) -> pa.Table:
        """The rows of the user, who stands in few row groups; of a tenant all."""
        wanted = [*columns, _USER]
        found = []
        with _opened(self._files[table]) as file:
            for number in range(file.num_row_groups):
                if self.user is None:
                    found.append(file.read_row_group(number, columns=wanted, use_threads=False))
                elif _may_hold(file.metadata.row_group(number), self.user):
                    group = file.read_row_group(number, columns=wanted, use_threads=False)
                    found.append(group.filter(pc.equal(group[_USER], self.user)))
            return pa.concat_tables(found) if found else file.schema_arrow.empty_table().select(wanted)


def _tables(path: Path | str, *, columns: Sequence[str]) -> Iterator[pa.Table]:
    with _opened(path) as file:
        for number in range(file.num_row_groups):
            yield file.read_row_group(number, columns=list(columns), use_threads=False)


@contextmanager
def _opened(path: Path | str) -> Iterator[pq.ParquetFile]:
    # By path alone a file system would be looked for first.
    with pa.OSFile(str(path), "rb") as source, pq.ParquetFile(source) as file:
        yield file


def _may_hold(group: Any, user: str) -> bool:
    """Whether the bounds of a row group leave room for ``user``."""
    for number in range(group.num_columns):
        column = group.column(number)
        if column.path_in_schema == _USER:
            bounds = column.statistics
            # Without bounds anything may be in it.
            return bounds is None or not bounds.has_min_max or bounds.min <= user <= bounds.max
    raise AssertionError("the table has a column of users")


def _bytes(column: Array) -> Array:
    """The 16 bytes of each UUID."""
    return column.combine_chunks().storage
