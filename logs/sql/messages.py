"""Make the engine's messages fit to be shown: no paths, no settings, the place in the text. Pure."""

from __future__ import annotations

import re
from typing import Final

#: Two or more path segments, with or without a scheme before them.
_PATH: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:/)?(?:/[^\s'\"/,;:()]+){2,}")

#: What the engine appends for the owner of its settings, or to echo the statement.
_ADVICE: Final = re.compile(r"\s*(?:Possible solutions:|Use \"?SET |\(?SET |LINE \d+:).*", re.DOTALL)


def clean_message(message: str) -> str:
    """Strip paths, and advice about settings, from an engine message."""
    return _PATH.sub("…", _ADVICE.sub("", message)).strip()


def character_offset(text: bytes, offset: int | None) -> int | None:
    """Turn the engine's offset in bytes of UTF-8 into one in characters; None where it lies outside."""
    if offset is None or not 0 <= offset <= len(text):
        return None
    return len(text[:offset].decode(errors="ignore"))


def with_place(message: str, statement: str, position: int | None) -> str:
    """Add line and column, both from 1, of a character offset to a message."""
    if position is None:
        return message
    before = statement[:position]
    line = before.count("\n") + 1
    column = position - (before.rfind("\n") + 1) + 1
    return f"{message} (line {line}, column {column})"
