"""The rows of a day's Parquet file as Arrow tables, some hundred thousand at a time."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.summaries.grouping import Array, Numbering, Statements
from tenantadmin.arrow import arange, pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

#: Row groups of the file, of at most 122,880 rows each, that are held at a time, and the bytes of them.
GROUPS: Final = 8
BYTES: Final = 256 << 20

#: Columns of texts that are numbered, and those that repeat, which are read as what they are stored as: a
#: dictionary and numbers.
_NUMBERED: Final = ("userName", "matchedRule", "cacheStatus", "cacheKey")
_STATEMENT: Final = "standardizedSql"
_REPEATING: Final = (*_NUMBERED, _STATEMENT, "matchedRuleName")
#: Bytes of the statements of a part above which few repeat, so that they are read as texts, some at a time.
STATEMENT_BYTES: Final = 64 << 20
_BATCH_BYTES: Final = 16 << 20


class DayRows:
    """A day's file, whose rows stand in the order that decides which is the latest. Threads may share it.

    Args:
        columns: those that are read beside the statements.
    """

    def __init__(self, path: Path, *, columns: Sequence[str]) -> None:
        self._path = path
        self._file = pq.ParquetFile(path, read_dictionary=list(_REPEATING))
        self._columns = list(columns)
        self._groups = list(_batched(self._file.metadata, [*columns, _STATEMENT]))
        self._held: tuple[int, pa.Table] | None = None
        self._reading = Lock()
        self.texts = {name: Numbering() for name in _NUMBERED}
        self.statements = Statements()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def parts(self) -> Iterator[pa.Table]:
        """All rows: texts by their numbers in ``texts`` and ``statements``, the row's own as ``row``."""
        start = 0
        for groups in self._groups:
            table = self._file.read_row_groups(groups, columns=self._columns)
            numbers = {name: numbering.encode(table[name]) for name, numbering in self.texts.items()}
            numbers[_STATEMENT] = self._number_statements(groups)
            # The last is held: most days have one.
            self._held = groups[0], table
            rows = arange(start, start + table.num_rows)
            start += table.num_rows
            yield pa.table(
                {**dict(zip(table.column_names, table.columns, strict=True)), **numbers, "row": rows}
            )

    def _number_statements(self, groups: list[int]) -> Array:
        held = [self._file.metadata.row_group(number) for number in groups]
        place = self._file.schema.names.index(_STATEMENT)
        size = sum(group.column(place).total_uncompressed_size for group in held)
        if size <= STATEMENT_BYTES:
            chunks = self._file.read_row_groups(groups, columns=[_STATEMENT])[_STATEMENT].chunks
            return pa.concat_arrays([self.statements.encode(chunk) for chunk in chunks])
        rows = max(1, _BATCH_BYTES * sum(group.num_rows for group in held) // size)
        with pq.ParquetFile(self._path) as file:
            batches = file.iter_batches(rows, row_groups=groups, columns=[_STATEMENT], use_threads=False)
            return pa.concat_arrays(
                [self.statements.encode(batch.column(0).dictionary_encode()) for batch in batches]
            )

    def at(self, rows: Array, columns: Sequence[str]) -> pa.Table:
        """``columns`` of the rows of these numbers, in that order."""
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
