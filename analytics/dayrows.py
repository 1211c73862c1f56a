"""The rows of a day's Parquet file as Arrow tables, some hundred thousand at a time."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.grouping import Array, Numbering
from tenantadmin.arrow import pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_arange: Any = getattr(pa, "arange")  # noqa: B009  # which the stubs do not know

#: Row groups of the file, of at most 122,880 rows each, that are held at a time, and the bytes of them.
GROUPS: Final = 8
BYTES: Final = 256 << 20

#: Columns of texts that are numbered, and those that repeat, which are read as what they are stored as: a
#: dictionary and numbers.
_NUMBERED: Final = ("userName", "standardizedSql", "matchedRule", "cacheStatus", "cacheKey")
_REPEATING: Final = (*_NUMBERED, "matchedRuleName")
#: The texts that a day has most of; they are held once, in their numbering.
_LARGE: Final = "standardizedSql"


class DayRows:
    """A day's file, whose rows stand in the order that decides which is the latest. Threads may share it.

    Args:
        columns: those that are read.
    """

    def __init__(self, path: Path, *, columns: Sequence[str]) -> None:
        self._file = pq.ParquetFile(path, read_dictionary=list(_REPEATING))
        self._columns = list(columns)
        self._groups = list(_batched(self._file.metadata, self._columns))
        self._held: tuple[int, pa.Table] | None = None
        self._reading = Lock()
        self.texts = {name: Numbering() for name in _NUMBERED}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def parts(self) -> Iterator[pa.Table]:
        """All rows: texts that repeat by their number in ``texts``, and the number of the row as ``row``."""
        start = 0
        for groups in self._groups:
            table = self._file.read_row_groups(groups, columns=self._columns)
            numbers = {name: numbering.encode(table[name]) for name, numbering in self.texts.items()}
            table = table.drop_columns([_LARGE])
            # The last is held: most days have one.
            self._held = groups[0], table
            rows = _arange(start, start + table.num_rows)
            start += table.num_rows
            yield pa.table(
                {**dict(zip(table.column_names, table.columns, strict=True)), **numbers, "row": rows}
            )

    def at(self, rows: Array, columns: Sequence[str]) -> pa.Table:
        """``columns`` of the rows of these numbers, in that order; not of statements."""
        wanted = rows.unique()
        wanted = wanted.take(pc.sort_indices(wanted))
        found = []
        for start, table in self._tables(columns):
            end = start + table.num_rows
            here = wanted.filter(pc.and_(pc.greater_equal(wanted, start), pc.less(wanted, end)))
            taken = table.select(list(columns)).take(pc.subtract(here, start))
            found.append(taken.cast(pa.schema([(field.name, _plain(field.type)) for field in taken.schema])))
        return pa.concat_tables(found).combine_chunks().take(pc.index_in(rows, value_set=wanted))

    def _tables(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """Each part with the number of its first row."""
        start = 0
        for groups in self._groups:
            with self._reading:
                if self._held is not None and self._held[0] == groups[0]:
                    table = self._held[1]
                else:
                    table = self._file.read_row_groups(groups, columns=list(columns))
            yield start, table
            start += table.num_rows


def _batched(file: pq.FileMetaData, columns: Sequence[str]) -> Iterator[list[int]]:
    """Successive row groups whose ``columns`` are held at a time."""
    places = [file.schema.names.index(name) for name in columns]
    batch: list[int] = []
    held = 0
    for number in range(file.num_row_groups):
        group = file.row_group(number)
        size = sum(group.column(place).total_uncompressed_size for place in places)
        if batch and (len(batch) == GROUPS or held + size > BYTES):
            yield batch
            batch, held = [], 0
        batch.append(number)
        held += size
    if batch:
        yield batch


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if isinstance(kind, pa.DictionaryType) else kind
