"""Read the values of the condition keys from a request or a log row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from rules.conditions.keys import CONDITION_KEYS, ConditionKey, Kind
from rules.json_text import is_array, name_type, read_integer

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The value of a condition key. Table names are a set.
Value: TypeAlias = str | int | bool | frozenset[str] | None
Request: TypeAlias = dict[str, Value]

_decode_array: Final = msgspec.json.Decoder(list[Any]).decode


class InvalidRequest(ValueError):
    """A value of a request has the wrong type. The message names the column, which is ``key``."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


def read_request(values: Mapping[str, object]) -> Request:
    """Read the condition keys from a row of ``proxy_logs`` or from a Gateway request.

    An absent key is null; other columns are ignored. ``tables`` is a list of names, or its JSON text. Text
    that is not a JSON array counts as null; elements that are not strings are ignored.

    Raises:
        InvalidRequest: a value has another type than its column.
    """
    return {name: _read_value(key, values.get(name)) for name, key in CONDITION_KEYS.items()}


_EXPECTED_TYPES: Final = {
    Kind.TEXT: "a string",
    Kind.IP: "a string",
    Kind.BOOL: "a boolean",
    Kind.NUMBER: "an integer",
    Kind.TABLES: "a JSON array of strings, or its text",
}


def _read_value(key: ConditionKey, value: object) -> Value:
    if value is None:
        return None
    match key.kind:
        case Kind.TEXT | Kind.IP if isinstance(value, str):
            return value
        case Kind.BOOL if isinstance(value, bool):
            return value
        case Kind.NUMBER if (number := read_integer(value)) is not None:
            return number
        case Kind.TABLES if isinstance(value, str):
            return read_table_names(value)
        case Kind.TABLES if is_array(value):
            return frozenset(name for name in value if isinstance(name, str))
    raise InvalidRequest(
        key.name, f"{key.name} must be {_EXPECTED_TYPES[key.kind]} or null, not {name_type(value)}"
    )


def read_table_names(text: str) -> frozenset[str] | None:
    """Return the texts in a JSON array, or None if ``text`` is not a JSON array."""
    try:
        names = _decode_array(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return frozenset(name for name in names if isinstance(name, str))
