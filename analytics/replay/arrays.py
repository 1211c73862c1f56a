"""Pass columns of whole numbers between DuckDB and Python without copying each value."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator

    from duckdb import DuckDBPyConnection


@contextmanager
def registered(connection: DuckDBPyConnection, **tables: pa.Table) -> Iterator[None]:
    """Register Arrow tables by name, so that queries inside the block can read them."""
    for name, table in tables.items():
        connection.register(name, table)
    try:
        yield
    finally:
        for name in tables:
            connection.unregister(name)


def read_numbers(column: Any) -> memoryview[int]:
    """Return a column of 64-bit integers without nulls as a sequence that shares its memory."""
    numbers = column.combine_chunks()
    if isinstance(numbers, pa.ChunkedArray):
        numbers = pa.concat_arrays(numbers.chunks) if numbers.num_chunks else pa.array([], pa.int64())
    if not len(numbers):
        return memoryview(b"").cast("q")
    view = memoryview(numbers.buffers()[1]).cast("B").cast("q")
    return view[numbers.offset : numbers.offset + len(numbers)]


def as_column(numbers: array[int]) -> Any:
    """Return an array of 64-bit integers as a column that shares its memory."""
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def make_schema(**fields: pa.DataType) -> pa.Schema:
    """Return a schema of nullable columns."""
    return pa.schema([pa.field(name, data_type) for name, data_type in fields.items()])
