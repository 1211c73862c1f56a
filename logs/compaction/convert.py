"""Entries to columns. Contract: "Query log entry and ``proxy_logs``"."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Self

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.json

from logs.columns import COLUMNS, SqlType
from logs.compaction.engine import HOUR_COLUMN, PREFIX_HOUR_COLUMN
from logs.layout import DAY_MS, HOUR_MS, day_start_ms
from tenantadmin.arrow import pc

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from logs.compaction.entries import Text

_ARROW_TYPES: Final[dict[SqlType, pa.DataType]] = {
    SqlType.VARCHAR: pa.string(),
    SqlType.BIGINT: pa.int64(),
    SqlType.INTEGER: pa.int32(),
    SqlType.BOOLEAN: pa.bool_(),
}
#: What a day's file holds, in order: the contract's columns, and two of our own.
SCHEMA: Final = pa.schema(
    [
        *((column.name, _ARROW_TYPES[column.type]) for column in COLUMNS),
        (HOUR_COLUMN, pa.int8()),
        (PREFIX_HOUR_COLUMN, pa.int8()),
    ]
)
_STRUCTURE: Final = json.dumps({column.name: column.type.value for column in COLUMNS})
_COLUMNS: Final = ", ".join(f'entry."{column.name}"' for column in COLUMNS)
_FROM_JSON: Final = f"SELECT {_COLUMNS} FROM (SELECT from_json(line, '{_STRUCTURE}') AS entry FROM lines)"  # noqa: S608

_JSON_NAMES: Final = tuple(column.name for column in COLUMNS if column.json_text)
_decode_json_values: Any = msgspec.json.Decoder(
    msgspec.defstruct("JsonValues", [(name, msgspec.Raw, msgspec.Raw()) for name in _JSON_NAMES], gc=False)
).decode
#: Entries of a piece that are looked at for what kind of value those columns come as.
_LOOKED_AT: Final = 32
_STRINGS: Final = pa.list_(pa.string())
#: How the parser ends a message on an object of the wrong kind.
_ROW: Final = re.compile(r" in row (\d+)$", re.ASCII)


class NotParsed(Exception):
    """Rows are not to be had at once, because of the object at ``place`` where that is known."""

    def __init__(self, place: int | None) -> None:
        super().__init__(place)
        self.place = place


class Converter:
    """Makes rows (`SCHEMA`) of entries, in their order. May be shared between threads."""

    def __init__(self, day: date) -> None:
        self._start = day_start_ms(day)
        self._engine = duckdb.connect(
            config={
                "threads": 1,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.close()

    def parse(self, objects: Sequence[Text], *, hours: bytes | bytearray) -> pa.RecordBatch:
        """Check the types of ``objects`` and make rows of them at once.

        That is to be had where each is an entry, no field stands twice in one, and what is JSON text came as
        text throughout, or throughout as lists of text without control characters.

        Args:
            objects: known to be JSON objects in UTF-8.
            hours: of their prefixes.

        Raises:
            NotParsed: it is not to be had.
        """
        text = b"\n".join(objects)
        types = _json_types(objects)
        fields = [pa.field(name, types.get(name, SCHEMA.field(name).type)) for name in SCHEMA.names[:-2]]
        try:
            table = pyarrow.json.read_json(
                pa.BufferReader(text),  # type: ignore[arg-type]  # missing in the published types
                read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
                parse_options=pyarrow.json.ParseOptions(
                    explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"
                ),
            )
        except pa.ArrowInvalid as error:
            named = _ROW.search(str(error))
            raise NotParsed(int(named[1]) if named else None) from None
        if table.num_rows != len(objects):
            raise NotParsed(None)
        columns = table.combine_chunks().to_batches()[0].columns
        return self._rows(
            [_json_text(column) if column.type == _STRINGS else column for column in columns], hours
        )

    def convert(self, entries: Sequence[Text], *, hours: bytes | bytearray) -> pa.RecordBatch:
        """Make rows of texts each of which is known to be an entry."""
        lines = pa.table({"line": pa.array(map(bytes, entries), pa.string())})
        with self._engine.cursor() as connection:
            connection.register("lines", lines)
            table = connection.execute(_FROM_JSON).to_arrow_table()
        return self._rows(table.combine_chunks().to_batches()[0].columns, hours)

    def _rows(self, columns: Sequence[pa.Array[Any]], hours: bytes | bytearray) -> pa.RecordBatch:
        prefix_hours = pa.Array.from_buffers(pa.int8(), len(hours), [None, pa.py_buffer(hours)])
        own = pc.subtract(columns[SCHEMA.get_field_index("timestamp")], self._start)
        in_day = pc.fill_null(pc.and_(pc.greater_equal(own, 0), pc.less(own, DAY_MS)), fill_value=False)
        own_hours = pc.divide(pc.if_else(in_day, own, 0), HOUR_MS).cast(pa.int8())
        arrays = [
            *(
                pc.fill_null(array, 0) if column.never_null else array
                for column, array in zip(COLUMNS, columns, strict=True)
            ),
            pc.if_else(in_day, own_hours, prefix_hours),
            prefix_hours,
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _json_types(objects: Sequence[Text]) -> dict[str, pa.DataType]:
    """The columns that are JSON text but seem to have come as lists."""
    found: dict[str, pa.DataType] = {}
    for text in islice(objects, _LOOKED_AT):
        values = _decode_json_values(text)
        found |= {name: _STRINGS for name in _JSON_NAMES if bytes(getattr(values, name)).startswith(b"[")}
    return found


def _json_text(lists: Any) -> Any:
    """Lists of text as JSON, as the engine writes it.

    Raises:
        NotParsed: a text is null or has control characters.
    """
    texts = lists.values
    if texts.null_count:
        raise NotParsed(None)
    if pc.any(pc.match_substring_regex(texts, r'[\x00-\x1f"\\]')).as_py():
        if pc.any(pc.match_substring_regex(texts, r"[\x00-\x1f]")).as_py():
            raise NotParsed(None)
        texts = pc.replace_substring_regex(texts, r'["\\]', r"\\\0")
    inner = pc.binary_join(pa.ListArray.from_arrays(lists.offsets, texts), '","')
    written = pc.binary_join_element_wise('["', inner, '"]', "")
    return pc.if_else(pc.equal(pc.list_value_length(lists), 0), "[]", written)
