"""Decoders that accept log entries alone. Each field has the type of its column."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec

from logs.columns import COLUMNS, MAX_TIMESTAMP, SqlType

Decoder = msgspec.json.Decoder[Any]
JsonBytes = bytes | memoryview

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
