"""Encode Arrow's columns as rows of PostgreSQL's protocol, a column at a time. Imports no Django."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from psycopg.types.numeric import DecimalBinaryDumper

from logs.sql.collecting import as_integers
from logs.sql.results import as_text, json_values
from logs.wire.messages import format_of

if TYPE_CHECKING:
    from logs.sql.protocol import QueryResult, ResultColumn

#: Microseconds and days from 1970 to 2000, from which PostgreSQL counts.
_EPOCH_MICROS: Final = 946_684_800_000_000
_EPOCH_DAYS: Final = 10_957
_NULL: Final = pa.scalar(b"\xff\xff\xff\xff", pa.binary())
_EMPTY: Final = pa.scalar(b"", pa.binary())
_INFINITE_MICROS: Final = 2**63 - 1
_INFINITE_DAYS: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Type:
    """A type of PostgreSQL. ``size`` is -1 if it varies."""

    oid: int
    size: int


BOOL, BYTEA, TEXT, JSON, UUID = Type(16, 1), Type(17, -1), Type(25, -1), Type(114, -1), Type(2950, 16)
INT2, INT4, INT8, NUMERIC = Type(21, 2), Type(23, 4), Type(20, 8), Type(1700, -1)
FLOAT4, FLOAT8 = Type(700, 4), Type(701, 8)
DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL = (
    *(Type(1082, 4), Type(1083, 8), Type(1114, 8), Type(1184, 8)),
    Type(1186, 16),
)

#: By DuckDB's name. DECIMAL(p, s) is found without its digits. All others are text, nested ones as JSON.
_TYPES: Final[dict[str, Type]] = {
    **dict.fromkeys(("TINYINT", "UTINYINT", "SMALLINT"), INT2),
    **dict.fromkeys(("USMALLINT", "INTEGER"), INT4),
    **dict.fromkeys(("UINTEGER", "BIGINT"), INT8),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT", "DECIMAL"), NUMERIC),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), TIMESTAMP),
    "BOOLEAN": BOOL,
    "BLOB": BYTEA,
    "FLOAT": FLOAT4,
    "DOUBLE": FLOAT8,
    "DATE": DATE,
    "TIME": TIME,
    "TIMESTAMP WITH TIME ZONE": TIMESTAMPTZ,
    "INTERVAL": INTERVAL,
    "UUID": UUID,
    "JSON": JSON,
}
_ARROW: Final = {
    INT2: pa.int16(),
    INT4: pa.int32(),
    INT8: pa.int64(),
    FLOAT4: pa.float32(),
    FLOAT8: pa.float64(),
}


def type_of(column: ResultColumn) -> Type:
    """Return the type that a column of a result has for PostgreSQL's clients."""
    name = column.type
    return _TYPES.get("DECIMAL" if name.startswith("DECIMAL(") and name.endswith(")") else name, TEXT)


def fields_of(columns: Sequence[ResultColumn]) -> list[tuple[str, int, int]]:
    """Return name, OID and size of each column, for a RowDescription."""
    types = [type_of(column) for column in columns]
    return [(column.name, type_.oid, type_.size) for column, type_ in zip(columns, types, strict=True)]


def pack_rows(
    result: QueryResult, batch: pa.RecordBatch, formats: Sequence[int], *, kind: bytes
) -> memoryview:
    """Return a message for each row: ``D`` for DataRow, or ``d`` for the rows of a binary COPY."""
    count = batch.num_rows
    pieces: list[Any] = []
    sizes: Any = pa.repeat(pa.scalar(6, pa.int32()), count)
    for place, column in enumerate(result.columns):
        values = _values(batch.column(place), type_of(column), is_binary=format_of(formats, place) == 1)
        lengths = pc.binary_length(values).cast(pa.int32())
        sizes = pc.add(sizes, pc.add(pc.fill_null(lengths, 0), 4))
        pieces += [pc.fill_null(_big_endian(lengths, "i"), _NULL), pc.fill_null(values, _EMPTY)]
    head = pa.scalar(len(result.columns).to_bytes(2, "big"), pa.binary())
    return _join(pa.scalar(kind, pa.binary()), _big_endian(sizes.cast(pa.int32()), "i"), head, *pieces)


def pack_lines(result: QueryResult, batch: pa.RecordBatch, *, is_csv: bool) -> memoryview:
    """Return a CopyData for each row, as COPY writes text or CSV."""
    pieces: list[Any] = []
    separator, null = (b",", b"") if is_csv else (b"\t", rb"\N")
    for place, column in enumerate(result.columns):
        values = _escaped(_texts(batch.column(place), type_of(column)), is_csv=is_csv)
        between = [pa.scalar(separator, pa.binary())] if place else []
        pieces += [*between, pc.fill_null(values.cast(pa.binary()), pa.scalar(null, pa.binary()))]
    end = pa.scalar(b"\n", pa.binary())
    lines = pc.binary_join_element_wise(*pieces, end, _EMPTY)
    sizes = pc.add(pc.binary_length(lines).cast(pa.int32()), 4)
    return _join(pa.scalar(b"d", pa.binary()), _big_endian(sizes.cast(pa.int32()), "i"), lines)


def _escaped(texts: Any, *, is_csv: bool) -> Any:
    if not is_csv:
        for plain, written in (("\\", r"\\"), ("\n", r"\n"), ("\r", r"\r"), ("\t", r"\t")):
            texts = pc.replace_substring(texts, plain, written)
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    quoted = pc.binary_join_element_wise('"', doubled, '"', "")
    return pc.if_else(pc.match_substring_regex(texts, r'^(\\\.)?$|[",\r\n]'), quoted, texts)


def _join(*pieces: Any) -> memoryview:
    """Return the bytes of all pieces, row after row."""
    joined = pc.binary_join_element_wise(*pieces, _EMPTY)
    start, end = joined.offset, joined.offset + len(joined)
    offsets = memoryview(joined.buffers()[1]).cast("i")
    return memoryview(joined.buffers()[2] or b"")[offsets[start] : offsets[end]]


def _values(column: Any, type_: Type, *, is_binary: bool) -> Any:
    """Return a column's values as PostgreSQL sends them."""
    if not is_binary or type_ in {TEXT, JSON}:
        return _texts(column, type_).cast(pa.binary())
    if type_ in _ARROW:
        return _big_endian(column.cast(_ARROW[type_]), {2: "h", 4: "i", 8: "q"}[type_.size])
    if type_ == BOOL:
        return pc.if_else(column, pa.scalar(b"\1", pa.binary()), pa.scalar(b"\0", pa.binary()))
    if type_ == NUMERIC:
        return _each(_decimals(column), DecimalBinaryDumper(Decimal).dump, pa.binary())
    if type_ == DATE:
        return _big_endian(_moved(column.view(pa.int32()), by=_EPOCH_DAYS, infinity=_INFINITE_DAYS), "i")
    if type_ in {TIMESTAMP, TIMESTAMPTZ}:
        return _big_endian(_moved(_micros(column), by=_EPOCH_MICROS, infinity=_INFINITE_MICROS), "q")
    if type_ == TIME:
        return _big_endian(_micros(as_integers(column), unit=column.type.unit), "q")
    if type_ == INTERVAL:
        return _each(
            column, lambda value: struct.pack("!qii", value[2] // 1000, value[1], value[0]), pa.binary()
        )
    return (column.storage if type_ == UUID else column).cast(pa.binary())


def _texts(column: Any, type_: Type) -> Any:
    """Return a column's values as PostgreSQL writes them."""
    if type_ == BOOL:
        return pc.if_else(column, "t", "f")
    if type_ == NUMERIC:
        return _decimals(column).cast(pa.string())
    if type_ in {FLOAT4, FLOAT8}:
        texts = column.cast(pa.string())
        return pc.replace_substring(pc.replace_substring(texts, "inf", "Infinity"), "nan", "NaN")
    if type_ in {TIMESTAMP, TIMESTAMPTZ} and not _has(micros := _micros(column), _INFINITE_MICROS):
        texts = micros.view(pa.timestamp("us")).cast(pa.string())
        texts = pc.replace_substring_regex(texts, r"(\.[0-9]*[1-9])0+$|\.0+$", r"\1")
        return pc.binary_join_element_wise(texts, "+00", "") if type_ == TIMESTAMPTZ else texts
    if type_ == DATE and not _has(column.view(pa.int32()), _INFINITE_DAYS):
        return column.cast(pa.string())
    if type_ in {INT2, INT4, INT8} or pa.types.is_string(column.type):
        return column.cast(pa.string())
    if type_ == BYTEA:
        return _each(column, lambda value: rf"\x{value.hex()}", pa.string())
    if type_ == INTERVAL:
        return _each(column, lambda value: _interval_text(*value), pa.string())
    return pa.array([None if value is None else as_text(value) for value in json_values(column)], pa.string())


def _each(column: Any, write: Callable[[Any], Any], type_: Any) -> Any:
    """Convert one value after another: of types that the log has not."""
    return pa.array([None if value is None else write(value) for value in column.to_pylist()], type_)


def _interval_text(months: int, days: int, nanoseconds: int) -> str:
    seconds, micros = divmod(abs(nanoseconds) // 1000, 1_000_000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{micros:06d}"
    return f"{months} mons {days} days {'-' if nanoseconds < 0 else ''}{clock}"


def _big_endian(numbers: Any, code: str) -> Any:
    """Return the bytes of each number, the highest first. ``code`` is the type of `array.array`."""
    packed = array(code)
    size, start, count = packed.itemsize, numbers.offset, len(numbers)
    packed.frombytes(memoryview(numbers.buffers()[1] or b"")[start * size : (start + count) * size])
    packed.byteswap()
    offsets = pa.py_buffer(array("i", range(0, size * (count + 1), size)))
    data = pa.Array.from_buffers(pa.binary(), count, [None, offsets, pa.py_buffer(packed)])
    return pc.if_else(numbers.is_valid(), data, None) if numbers.null_count else data


def _micros(column: Any, *, unit: str = "") -> Any:
    """Return times as microseconds. Infinities are the same number in every unit."""
    counts = column.view(pa.int64())
    match unit or column.type.unit:
        case "us":
            return counts
        case "ns":
            scaled = pc.divide(counts, 1000)
        case other:
            scaled = pc.multiply(counts, {"s": 1_000_000, "ms": 1000}[other])
    return pc.if_else(pc.equal(pc.abs(counts), _INFINITE_MICROS), counts, scaled)


def _has(counts: Any, infinity: int) -> bool:
    return bool(pc.any(pc.equal(pc.abs(counts), infinity)).as_py())


def _moved(counts: Any, *, by: int, infinity: int) -> Any:
    """Count from 2000. PostgreSQL's minus infinity is the smallest number."""
    moved = pc.if_else(pc.equal(counts, infinity), counts, pc.subtract(counts, pa.scalar(by, counts.type)))
    return pc.if_else(pc.equal(counts, -infinity), pa.scalar(-infinity - 1, counts.type), moved)


def _decimals(column: Any) -> Any:
    """Return integers of more than 64 bits, and decimals, as decimals of 128 bits."""
    type_ = column.type
    if pa.types.is_decimal128(type_):
        return column
    if isinstance(type_, pa.OpaqueType):
        if type_.type_name == "uhugeint":
            return pa.array(json_values(column), pa.decimal256(39, 0))
        storage = column.storage
        return pa.Array.from_buffers(
            pa.decimal128(38, 0), len(column), storage.buffers(), offset=storage.offset
        )
    return column.cast(pa.decimal128(20, 0))
