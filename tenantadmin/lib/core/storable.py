"""Characters that PostgreSQL cannot store: NUL, which logs may contain, and halves of surrogate pairs."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"


def is_storable(text: str) -> bool:
    """Return True if PostgreSQL can store the text."""
    return _UNSTORABLE.search(text) is None


def make_storable(value: Any) -> Any:
    """Return a struct or JSON value as JSON, with U+FFFD in place of characters that cannot be stored."""
    return _without_unstorable(msgspec.to_builtins(value))


def _without_unstorable(value: Any) -> Any:
    match value:
        case str():
            return _UNSTORABLE.sub(_REPLACEMENT, value)
        case dict():
            return {_without_unstorable(name): _without_unstorable(member) for name, member in value.items()}
        case list() | tuple():
            return [_without_unstorable(element) for element in value]
        case _:
            return value
