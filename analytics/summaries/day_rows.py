"""Read the rows of a day's Parquet file as Arrow tables, a part at a time."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.summaries.grouping import Array, StatementDictionary, TextDictionary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

#: The maximum size of a part: row groups (of at most 122,880 rows each), and bytes.
GROUPS: Final = 8
BYTES: Final = 256 << 20

#: Columns that get codes. Below, columns that are read with the dictionaries and codes of the file.
_ENCODED: Final = ("userName", "matchedRule", "cacheStatus", "cacheKey")
_STATEMENT: Final = "standardizedSql"
_DICTIONARY_COLUMNS: Final = (*_ENCODED, _STATEMENT, "matchedRuleName")
#: If the statements of a part have more bytes, few of them repeat. Small batches of texts are read instead.
STATEMENT_BYTES: Final = 64 << 20
_BATCH_BYTES: Final = 16 << 20


class DayRows:
    """The rows of a day's file. They are in the order that decides which entry is the latest.

    Threads may share it.

    Args:
        columns: columns to read besides the statements.

    Attributes:
        texts: a dictionary for each encoded column.
        statements: the dictionary of the statements.
    """

    def __init__(self, path: Path, *, columns: Sequence[str]) -> None:
        self._path = path
        self._file = pq.ParquetFile(path, read_dictionary=list(_DICTIONARY_COLUMNS))
        self._columns = list(columns)
        self._parts = list(_parts(self._file.metadata, [*columns, _STATEMENT]))
        self._latest_part: tuple[int, pa.Table] | None = None
        self._reading = Lock()
        self.texts = {name: TextDictionary() for name in _ENCODED}
        self.statements = StatementDictionary()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def parts(self) -> Iterator[pa.Table]:
        """Yield all rows. Codes of ``texts`` and ``statements`` replace texts; ``row`` is the row number."""
        start = 0
        for groups in self._parts:
            table = self._file.read_row_groups(groups, columns=self._columns)
            codes = {name: dictionary.encode(table[name]) for name, dictionary in self.texts.items()}
            codes[_STATEMENT] = self._encode_statements(groups)
            # Keep the last part for `at`: most days have only one.
            self._latest_part = groups[0], table
            rows = pa.arange(start, start + table.num_rows)  # type: ignore[attr-defined]
            start += table.num_rows
            yield pa.table(
                {**dict(zip(table.column_names, table.columns, strict=True)), **codes, "row": rows}
            )

    def _encode_statements(self, groups: list[int]) -> Array:
        row_groups = [self._file.metadata.row_group(number) for number in groups]
        index = self._file.schema.names.index(_STATEMENT)
        size = sum(group.column(index).total_uncompressed_size for group in row_groups)
        if size <= STATEMENT_BYTES:
            chunks = self._file.read_row_groups(groups, columns=[_STATEMENT])[_STATEMENT].chunks
            return pa.concat_arrays([self.statements.encode(chunk) for chunk in chunks])
        rows = max(1, _BATCH_BYTES * sum(group.num_rows for group in row_groups) // size)
        with pq.ParquetFile(self._path) as file:
            batches = file.iter_batches(rows, row_groups=groups, columns=[_STATEMENT], use_threads=False)
            return pa.concat_arrays(
                [self.statements.encode(batch.column(0).dictionary_encode()) for batch in batches]
            )

    def at(self, rows: Array, columns: Sequence[str]) -> pa.Table:
        """Return ``columns`` of the rows with the numbers ``rows``, in that order."""
        numbers = rows.unique()
        numbers = numbers.take(pc.sort_indices(numbers))
        tables = []
        for start, table in self._read_parts(columns):
            end = start + table.num_rows
            in_part = numbers.filter(pc.and_(pc.greater_equal(numbers, start), pc.less(numbers, end)))
            taken = table.select(list(columns)).take(pc.subtract(in_part, start))
            tables.append(
                taken.cast(pa.schema([(field.name, _decoded(field.type)) for field in taken.schema]))
            )
        return pa.concat_tables(tables).combine_chunks().take(pc.index_in(rows, value_set=numbers))

    def _read_parts(self, columns: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """Yield the number of the first row of each part, and its ``columns``."""
        start = 0
        for groups in self._parts:
            with self._reading:
                if self._latest_part is not None and self._latest_part[0] == groups[0]:
                    table = self._latest_part[1]
                else:
                    table = self._file.read_row_groups(groups, columns=list(columns))
            yield start, table
            start += table.num_rows


def _parts(file: pq.FileMetaData, columns: Sequence[str]) -> Iterator[list[int]]:
    """Yield the row groups of each part. A part is as large as `GROUPS` and `BYTES` of ``columns`` allow."""
    indexes = [file.schema.names.index(name) for name in columns]
    part: list[int] = []
    part_size = 0
    for number in range(file.num_row_groups):
        group = file.row_group(number)
        size = sum(group.column(index).total_uncompressed_size for index in indexes)
        if part and (len(part) == GROUPS or part_size + size > BYTES):
            yield part
            part, part_size = [], 0
        part.append(number)
        part_size += size
    if part:
        yield part


def _decoded(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if isinstance(type_, pa.DictionaryType) else type_
