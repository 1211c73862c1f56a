"""Decode log entries, correct what is nearly one, and convert them to columns.

Of a repeated field the last value counts, 12.0 is the integer 12, and a timestamp that no date holds is null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any, Final, NamedTuple

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from logs.columns import COLUMNS, MAX_TIMESTAMP, SqlType
from logs.layout import DAY_MS, HOUR_MS, day_start_ms
from logs.quoting import quote_text

Decoder = msgspec.json.Decoder[Any]

JsonBytes = bytes | memoryview

#: The hour (0 to 23) under which an entry counts: the hour of its timestamp if that is in the day, else the
#: hour of the object's prefix. The column is in the file but not in ``proxy_logs``.
HOUR_COLUMN: Final = "_hour"
#: The hour (0 to 23) of the object's prefix. A rebuild uses it to find the rows that it can reuse.
PREFIX_HOUR_COLUMN: Final = "_prefix_hour"
#: The largest entry, in bytes. DuckDB holds it in memory as a whole.
MAX_ENTRY_BYTES: Final = 16 * 1024 * 1024

_TYPES: Final[dict[SqlType, Any]] = {
    SqlType.VARCHAR: str,
    SqlType.BIGINT: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)],
    SqlType.INTEGER: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)],
    SqlType.BOOLEAN: bool,
}

_FIELDS: Final[dict[str, Any]] = {
    column.name: msgspec.Raw if column.json_text else _TYPES[column.type] | None for column in COLUMNS
} | {"timestamp": Annotated[int, msgspec.Meta(ge=0, le=MAX_TIMESTAMP)] | None}

decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

DECODE_ERRORS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


@lru_cache(maxsize=16)
def entry_decoder(field_order: tuple[str, ...]) -> Decoder:
    """Return a decoder of log entries. It takes a third less time if their fields have this order.

    msgspec looks for each field next to the one that it found last.
    """
    names = dict.fromkeys([*field_order, *_FIELDS])
    entry = msgspec.defstruct("Entry", [(name, _FIELDS[name], None) for name in names], gc=False)
    return msgspec.json.Decoder(entry)


def decoder_for(value: JsonBytes) -> Decoder:
    """Return the decoder for entries whose fields are in the same order as in ``value``."""
    try:
        return entry_decoder(tuple(name for name in decode_members(value) if name in _FIELDS))
    except DECODE_ERRORS:
        return entry_decoder(())


_INTEGERS: Final = {column.name for column in COLUMNS if column.type in {SqlType.BIGINT, SqlType.INTEGER}}

_INTEGER: Final = re.compile(rb"-?[0-9]+")

#: A number that may have a fraction or an exponent.
_FLOAT: Final = re.compile(rb"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?")


def corrected_entry(value: bytes) -> tuple[bytes | None, str]:
    """Return the entry that a value is after its corrections, and what to say of it; else None."""
    try:
        fields = {name: bytes(raw) for name, raw in decode_members(value).items()}
    except DECODE_ERRORS:
        return None, ""
    for name in _INTEGERS & fields.keys():
        fields[name] = _as_integer(fields[name])
    error = ""
    moment = fields.get("timestamp", b"null")
    if _INTEGER.fullmatch(moment) and not (len(moment) < 20 and 0 <= int(moment) <= MAX_TIMESTAMP):
        fields["timestamp"] = b"null"
        error = f"timestamp {moment.decode()[:40]} is outside of the years 1970 to 9999 and read as null"
    text = b"{%b}" % b",".join(b"%b:%b" % (json.dumps(name).encode(), raw) for name, raw in fields.items())
    try:
        entry_decoder(()).decode(text)
    except DECODE_ERRORS:
        return None, ""
    return text, error


def _as_integer(number: bytes) -> bytes:
    """Return a number without a fraction as an integer: 12 for ``12.0``. Return other values as they are."""
    if _FLOAT.fullmatch(number) and not _INTEGER.fullmatch(number):
        value = Decimal(number.decode())
        if value.adjusted() < len(str(2**63)) and value == value.to_integral_value():
            return str(int(value)).encode()
    return number


def unrepeated(value: bytes) -> bytes:
    """Return an entry with each field once. Of a repeated one, the last value counts."""
    text, _ = corrected_entry(value)
    if text is None:
        raise AssertionError("the caller found that it is an entry")
    return text


_ARROW_TYPES: Final[dict[SqlType, pa.DataType]] = {
    SqlType.VARCHAR: pa.string(),
    SqlType.BIGINT: pa.int64(),
    SqlType.INTEGER: pa.int32(),
    SqlType.BOOLEAN: pa.bool_(),
}

#: The columns of a day's file, in order: the contract's columns and two internal ones.
SCHEMA: Final = pa.schema(
    [
        *((column.name, _ARROW_TYPES[column.type]) for column in COLUMNS),
        (HOUR_COLUMN, pa.int8()),
        (PREFIX_HOUR_COLUMN, pa.int8()),
    ]
)

_ENTRY_STRUCTURE: Final = json.dumps({column.name: column.type.value for column in COLUMNS})

_INPUT_SCHEMA: Final = pa.schema([("entry_json", pa.large_string())])

_JSON_TEXTS: Final = [column.name for column in COLUMNS if column.json_text]

_decode_json_texts: Final = msgspec.json.Decoder(
    msgspec.defstruct("_JsonTexts", [(name, msgspec.Raw, msgspec.Raw()) for name in _JSON_TEXTS])
).decode

#: Where a number with a fraction or an exponent may begin.
_HAS_FRACTION: Final = r"(?:^|[\[,:])-?[0-9]+[.eE]"

_STRING_OR_NUMBER: Final = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*')


def connect() -> duckdb.DuckDBPyConnection:
    """Open a DuckDB for converters. Each converter uses its own cursor."""
    return duckdb.connect(
        config={
            "threads": 1,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )


class Chunk(NamedTuple):
    """Log entries that are converted together.

    Attributes:
        arrays: the entries as JSON. DuckDB parses one array at a time. Small arrays stay in the processor's
            cache, which saves a third of the time.
        hours: the prefix hour of each entry, one byte each.
    """

    arrays: Sequence[pa.Array[Any]]
    hours: bytes | bytearray


class Converter:
    """Converts log entries to rows (`SCHEMA`). Threads must not share a converter."""

    def __init__(self, engine: duckdb.DuckDBPyConnection, *, day: date) -> None:
        self._engine = engine.cursor()
        self._start = day_start_ms(day)
        self._unrepeated: set[int] = set()

    def convert(self, chunk: Chunk) -> pa.RecordBatch:
        """Return a row for each entry, in order. The chunk has at least one entry, and all are checked.

        If an entry has a field more than once, the last value counts. Lists and objects in columns of JSON
        text are written without spaces, and numbers as they are in the entry.
        """
        arrays = chunk.arrays
        parsed = self._parse(arrays)
        if repeating := self._shapes_that_repeat(arrays, parsed["shape"]):
            arrays = list(_without_repetition(arrays, parsed["shape"], repeating))
            parsed = self._parse(arrays)
        (columns,) = pa.Table.from_struct_array(parsed["entry"]).combine_chunks().to_batches()
        for name in _JSON_TEXTS:
            columns = _with_exact_numbers(columns, name, arrays)
        if columns.num_rows != len(chunk.hours):
            raise AssertionError(f"{len(chunk.hours)} entries gave {columns.num_rows} rows")
        return self._add_hours(columns.columns, chunk.hours)

    def _parse(self, arrays: Sequence[pa.Array[Any]]) -> pa.Table:
        """Return ``entry``, the columns, and ``shape``, a hash of the names of the fields in their order."""
        batches = [pa.record_batch([array], schema=_INPUT_SCHEMA) for array in arrays]
        source = self._engine.from_arrow(pa.RecordBatchReader.from_batches(_INPUT_SCHEMA, batches))
        entry = f"from_json(entry_json, {quote_text(_ENTRY_STRUCTURE)}) AS entry"
        return source.project(f"{entry}, hash(json_keys(entry_json)) AS shape").to_arrow_table()

    def _shapes_that_repeat(self, arrays: Sequence[pa.Array[Any]], shapes: pa.ChunkedArray[Any]) -> set[int]:
        """Return the shapes with a repeated field. DuckDB would take the first value, not the last.

        Hashing the names takes half as long as parsing the entries. Only one entry of each new shape is read.
        """
        unknown = set(pc.unique(shapes).to_pylist()) - self._unrepeated
        if not unknown:
            return set()
        examples = dict(zip(reversed(shapes.to_pylist()), reversed(_texts(arrays)), strict=True))
        repeating = {shape for shape in unknown if _repeats(examples[shape].as_py())}
        self._unrepeated |= unknown - repeating
        return repeating

    def _add_hours(self, columns: Sequence[pa.Array[Any]], hours: bytes | bytearray) -> pa.RecordBatch:
        prefix_hours = pa.Array.from_buffers(pa.int8(), len(hours), [None, pa.py_buffer(hours)])
        since_midnight = pc.subtract(columns[SCHEMA.get_field_index("timestamp")], self._start)
        in_day = pc.fill_null(
            pc.and_(pc.greater_equal(since_midnight, 0), pc.less(since_midnight, DAY_MS)), fill_value=False
        )
        own_hours = pc.divide(pc.if_else(in_day, since_midnight, 0), HOUR_MS).cast(pa.int8())
        arrays = [
            *(
                pc.fill_null(array, 0) if column.never_null else array
                for column, array in zip(COLUMNS, columns, strict=True)
            ),
            pc.if_else(in_day, own_hours, prefix_hours),
            prefix_hours,
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _with_exact_numbers(
    columns: pa.RecordBatch, name: str, arrays: Sequence[pa.Array[Any]]
) -> pa.RecordBatch:
    """Write numbers with a fraction or an exponent as in the entry. DuckDB has read them as DOUBLE."""
    index = columns.schema.get_field_index(name)
    has_fraction = pc.match_substring_regex(columns.column(index), _HAS_FRACTION)
    rows = pc.indices_nonzero(pc.fill_null(has_fraction, fill_value=False)).to_pylist()
    if not rows:
        return columns
    entries = pa.chunked_array(arrays)
    texts: list[Any] = columns.column(index).to_pylist()
    for row in rows:
        raw = bytes(getattr(_decode_json_texts(entries[row].as_py()), name)).decode()
        if not raw.startswith('"'):
            texts[row] = _with_numbers_of(raw, texts[row])
    return columns.set_column(index, name, pa.array(texts, pa.string()))


def _with_numbers_of(raw: str, text: str) -> str:
    """Return the JSON ``text`` with the numbers of ``raw``, which is the same but for spaces and escapes."""
    written = iter(_STRING_OR_NUMBER.findall(raw))

    def replace(found: re.Match[str]) -> str:
        token: str = next(written)
        return found[0] if token.startswith('"') else token

    return _STRING_OR_NUMBER.sub(replace, text)


def _texts(arrays: Sequence[pa.Array[Any]]) -> list[Any]:
    return [text for array in arrays for text in array]


def _repeats(entry: str) -> bool:
    """Return True if a field is there more than once."""
    pairs: list[tuple[str, Any]] = []
    json.loads(entry, object_pairs_hook=lambda found: pairs.__setitem__(slice(None), found))
    return len(dict(pairs)) < len(pairs)


def _without_repetition(
    arrays: Sequence[pa.Array[Any]], shapes: pa.ChunkedArray[Any], repeating: set[int]
) -> Iterator[pa.Array[Any]]:
    """Yield the arrays with the fields of entries of these shapes once each."""
    remaining = iter(shapes.to_pylist())
    for array in arrays:
        texts: list[Any] = array.to_pylist()
        for index, shape in enumerate(islice(remaining, len(texts))):
            if shape in repeating:
                texts[index] = unrepeated(texts[index].encode()).decode()
        yield pa.array(texts, pa.large_string())
