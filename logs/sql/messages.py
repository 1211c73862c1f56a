"""Make the engine's messages fit to be shown: no paths, no settings, the place in the text. Pure."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Where the service and its engine lie. A path elsewhere comes from the statement or the log, and stays.
_ROOTS: Final = (str(Path(__file__).parents[2]), sys.prefix, str(Path("~").expanduser()))

#: What the engine adds for the owner of its settings, or to echo the statement: whole sentences, after the
#: message. What it quotes of the statement or the log may read alike, but has its closing quote behind it.
_ADVICE: Final = (
    re.compile(r"""\s+Use "?SET [a-z_]+(?: TO |=)\S+ to [^'"]*$"""),
    re.compile(r"\n\* SET [a-z_]+=\S+ to [^.'\"]*\.(?=$|\n)"),
    re.compile(r"\n+Possible solutions:\n.*", re.DOTALL),
    re.compile(r"\n+LINE \d+: .*\n *\^\s*$", re.DOTALL),
)


def clean_message(message: str, *, roots: Iterable[str] = _ROOTS) -> str:
    """Strip paths below ``roots``, and advice about settings, from an engine message."""
    for advice in _ADVICE:
        message = advice.sub("", message)
    for root in sorted(roots, key=len, reverse=True):
        if root.startswith("/") and root != "/":
            message = re.sub(rf"(?<![\w/.-]){re.escape(root)}(?:/[^\s'\"/,;:()]+)+", "…", message)
    return message.strip()


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
