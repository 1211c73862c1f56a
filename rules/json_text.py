"""Check JSON values, and describe them and their paths in messages."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, TypeGuard

#: A JSON object, and a path from a document to one of its values: property names and array indexes.
JsonObject: TypeAlias = Mapping[str, object]
Path: TypeAlias = tuple[str | int, ...]

_TYPE_NAMES: Final = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
    type(None): "null",
}

_MAX_CHARACTERS: Final = 80
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Return True if the value is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[Sequence[object]]:
    """Return True if the value is a JSON array."""
    return isinstance(value, list)


def is_number(value: object) -> TypeGuard[int | float]:
    """Return True if the value is a finite JSON number. ``true`` is not, although Python's bool is an int."""
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, float) and math.isfinite(value)
    )


def read_integer(value: object) -> int | None:
    """Return a JSON integer, or None for any other value. ``60.0`` is an integer, as in JSON Schema."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def has_forbidden_characters(text: str) -> bool:
    """Return True if the text contains NUL or an unpaired surrogate, which cannot be stored or logged."""
    return "\0" in text or not (text.isascii() or _SURROGATE.search(text) is None)


def name_type(value: object) -> str:
    """Return the name of a value's JSON type for a message: ``a string``, ``an array``, ``null``."""
    if isinstance(value, float) and not math.isfinite(value):
        return "a number that is not finite"
    return _TYPE_NAMES.get(type(value), "an unknown value")


def show_text(text: str) -> str:
    """Quote a text for a message: on one line, with at most 80 characters, without unpaired surrogates."""
    shortened = text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"
    quoted = json.dumps(shortened, ensure_ascii=False)
    return quoted.encode("utf-8", "replace").decode() if has_forbidden_characters(quoted) else quoted


def show_value(value: object) -> str:
    """Return a scalar as text for a message. For any other value, return the name of its type."""
    if isinstance(value, str):
        return show_text(value)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if is_number(value):
        is_short = isinstance(value, float) or abs(value) < 10**_MAX_CHARACTERS
        return repr(value) if is_short else "a huge number"
    return name_type(value)


def join_pointer(path: Sequence[str | int]) -> str:
    """Return a path as a JSON Pointer (RFC 6901)."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in path)
