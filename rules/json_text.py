"""How JSON values are named, shown and pointed at in messages."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: A JSON object, and the way from a document to one of its values: property names and array indexes.
JsonObject: TypeAlias = "Mapping[str, object]"
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

_SHOWN_CHARACTERS: Final = 80
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Tell whether the value is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[Sequence[object]]:
    """Tell whether the value is a JSON array."""
    return isinstance(value, list)


def is_number(value: object) -> TypeGuard[int | float]:
    """Tell whether the value is a finite JSON number. ``true`` is none, although Python's bool is an int."""
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, float) and math.isfinite(value)
    )


def read_integer(value: object) -> int | None:
    """Read a JSON integer; ``60.0`` is one, as JSON Schema has it. None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def holds_forbidden_characters(text: str) -> bool:
    """Tell whether the text holds NUL or an unpaired surrogate, which no store or log can hold."""
    return "\0" in text or not (text.isascii() or _SURROGATE.search(text) is None)


def name_type(value: object) -> str:
    """Name the JSON type of a value for a message: ``a string``, ``an array``, ``null``."""
    if isinstance(value, float) and not math.isfinite(value):
        return "a number that is not finite"
    return _TYPE_NAMES.get(type(value), "an unknown value")


def show_text(text: str) -> str:
    """Quote a text for a message: on one line, at most 80 characters, encodable."""
    shown = text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
    quoted = json.dumps(shown, ensure_ascii=False)
    return quoted.encode("utf-8", "replace").decode() if holds_forbidden_characters(quoted) else quoted


def show_value(value: object) -> str:
    """Show a scalar for a message, and anything larger by its type."""
    if isinstance(value, str):
        return show_text(value)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if is_number(value):
        is_short = isinstance(value, float) or abs(value) < 10**_SHOWN_CHARACTERS
        return repr(value) if is_short else "a huge number"
    return name_type(value)


def join_pointer(path: Sequence[str | int]) -> str:
    """Write a path as a JSON Pointer (RFC 6901)."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in path)
