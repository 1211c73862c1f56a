"""Write a query's result as JSON, NDJSON, CSV or Parquet, in pieces of bytes.

Contract: "SQL over the log". Imports neither Django nor DRF.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Meta

from logs.sql.arrays import with_milliseconds
from logs.sql.values import as_text, json_values
from tenantadmin.lib.core.spreadsheets import csv_bytes
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from logs.sql.protocol import QueryResult

#: Rows, and bytes of rows of equal length, that are converted to Python values at a time, to limit memory.
#: Other threads wait meanwhile.
_PIECE_ROWS: Final = 1_000
_PIECE_BYTES: Final = 1 << 17
#: No text has this, because quotation marks in it are escaped.
_ROWS: Final = b'"rows":['
#: Arrow's names of DuckDB's integers of 128 bits, and the types of Parquet that hold some of them.
_HUGE: Final = frozenset({"hugeint", "uhugeint"})
_INTEGERS: Final[tuple[tuple[pa.DataType, int, int], ...]] = (
    (pa.int64(), -(2**63), 2**63 - 1),
    (pa.decimal128(38, 0), 1 - 10**38, 10**38 - 1),
)
_encoder: Final = msgspec.json.Encoder()


class QueryColumn(JsonStruct):
    name: str
    type: Annotated[str, Meta(description="The engine's type, such as VARCHAR or BIGINT.")]


class QueryAnswer(JsonStruct):
    """The rows of a query, as objects by column name."""

    tenant_id: UUID
    columns: list[QueryColumn]
    rows: list[dict[str, Any]]
    row_count: Count
    truncated: Annotated[bool, Meta(description="True when the cap cut the result.")]


def json_pieces(result: QueryResult, *, tenant: UUID) -> Iterator[bytes]:
    """Yield a `QueryAnswer`."""
    answer = QueryAnswer(
        tenant_id=tenant,
        columns=[QueryColumn(name=column.name, type=column.type) for column in result.columns],
        rows=[],
        row_count=result.row_count,
        truncated=result.truncated,
    )
    head, tail = _encoder.encode(answer).split(_ROWS, 1)
    yield head + _ROWS
    yield from json_rows(result)
    yield tail


def json_rows(result: QueryResult) -> Iterator[bytes]:
    """Yield the rows as JSON objects with commas between them."""
    separator = b""
    for rows in _row_pieces(result):
        yield separator + _encoder.encode(rows)[1:-1]
        separator = b","


def ndjson_pieces(result: QueryResult) -> Iterator[bytes]:
    """Yield one line of JSON per row."""
    for rows in _row_pieces(result):
        yield _encoder.encode_lines(rows)


def csv_pieces(result: QueryResult, *, for_people: bool = False) -> Iterator[bytes]:
    """Yield CSV (RFC 4180) with a header line. Null is an empty field, and nested values are JSON.

    ``for_people``: see `csv_bytes`.
    """
    yield csv_bytes([[column.name for column in result.columns]], for_people=for_people, as_text=as_text)
    for table in _column_pieces(result):
        yield csv_bytes(zip(*table, strict=True), for_people=for_people, as_text=as_text)


def parquet_pieces(result: QueryResult) -> Iterator[bytes]:
    """Return a Parquet file. HUGEINTs, such as sums, become BIGINT where all fit, else DECIMAL(38,0).

    Other types that Parquet lacks become text, as in JSON.

    The file is complete before this returns, so that an error comes before the response has started.
    """
    names = [column.name for column in result.columns]
    columns = [
        _parquet_column([batch.column(index) for batch in result.batches]) for index in range(len(names))
    ]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, names=names), sink, compression="zstd")
    return iter([sink.getvalue()])


def _column_pieces(result: QueryResult) -> Iterator[list[list[Any]]]:
    """Yield the values of some rows at a time, by column."""
    for batch in result.batches:
        rows = min(_PIECE_ROWS, max(1, _PIECE_BYTES * batch.num_rows // max(1, batch.nbytes)))
        for start in range(0, batch.num_rows, rows):
            piece = batch.slice(start, rows)
            yield [json_values(column) for column in piece.columns]


def _row_pieces(result: QueryResult) -> Iterator[list[dict[str, Any]]]:
    names = [column.name for column in result.columns]
    for table in _column_pieces(result):
        yield [dict(zip(names, row, strict=True)) for row in zip(*table, strict=True)]


def _parquet_column(chunks: list[pa.Array[Any]]) -> pa.ChunkedArray[Any]:
    if isinstance(chunks[0].type, pa.OpaqueType) and chunks[0].type.type_name in _HUGE:
        integers = [json_values(chunk) for chunk in chunks]
        # The first type that holds all of them.
        for type_, low, high in _INTEGERS:
            if all(value is None or low <= value <= high for values in integers for value in values):
                return pa.chunked_array([pa.array(values, type_) for values in integers])
    if _fits_parquet(chunks[0].type):
        # Parquet has no timestamps in seconds, and Arrow cannot convert DuckDB's infinities.
        return pa.chunked_array([with_milliseconds(chunk) for chunk in chunks])
    return pa.chunked_array(
        [
            pa.array([None if value is None else as_text(value) for value in json_values(chunk)], pa.string())
            for chunk in chunks
        ]
    )


def _fits_parquet(type_: pa.DataType) -> bool:
    if isinstance(type_, pa.OpaqueType) or pa.types.is_union(type_) or pa.types.is_interval(type_):
        return False
    if pa.types.is_struct(type_) and type_.num_fields == 0:
        return False
    return all(_fits_parquet(type_.field(index).type) for index in range(type_.num_fields))
