"""Prepare DuckDB's messages for users: remove paths and advice on settings, add line and column."""

from __future__ import annotations

import difflib
import os.path
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from logs.columns import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Folders of the service and of DuckDB. Any other path comes from the statement or the log, and is kept.
#: `Path.expanduser` fails for a user without an entry in /etc/passwd, such as OpenShift's.
_ROOTS: Final = (str(Path(__file__).parents[2]), sys.prefix, os.path.expanduser("~"))  # noqa: PTH111

#: Sentences that DuckDB adds after its message: advice for operators on settings, and an echo of the
#: statement. If the message quotes text that looks the same, a closing quote follows, so it does not match.
_ADVICE: Final = (
    re.compile(r"""\s+Use "?SET [a-z_]+(?: TO |=)\S+ to [^'"]*$"""),
    re.compile(r"\n\* SET [a-z_]+=\S+ to [^.'\"]*\.(?=$|\n)"),
    re.compile(r"\n+Possible solutions:\n.*", re.DOTALL),
    re.compile(r"\n+LINE \d+: .*\n *\^\s*$", re.DOTALL),
)

#: What authors of queries take `day` and the times for.
_HINTS: Final = (
    (
        re.compile(
            r"values of type (VARCHAR and (type )?(DATE|TIMESTAMP)|(DATE|TIMESTAMP\b.*) and (type )?VARCHAR)"
        ),
        "`day` is text: compare it with '2026-03-01' or strftime(current_date - 7, '%Y-%m-%d').",
    ),
    (
        re.compile(
            r"values of type (BIGINT and (type )?(DATE|TIMESTAMP)|(DATE|TIMESTAMP\b.*) and (type )?BIGINT)"
        ),
        "`timestamp` and `cacheExpiresAt` are epoch milliseconds: to_timestamp(timestamp / 1000) is a time.",
    ),
)

_CANDIDATES: Final = re.compile(r"\nCandidate bindings: .*", re.DOTALL)
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_MAX_CANDIDATES: Final = 5
#: DuckDB takes names for alike that share a few letters.
_SIMILARITY: Final = 0.7


def rank_candidates(message: str, details: Mapping[str, Any]) -> str:
    """Name the columns that share words or most letters with an unknown one in place of DuckDB's choice."""
    if "candidates" not in details:
        return message
    name, given = str(details.get("name")), str(details["candidates"]).split(",")
    words = {word.lower() for word in _WORD.findall(name)}
    ranks = {}
    for known in dict.fromkeys([*given, *(() if BY_NAME.keys().isdisjoint(given) else BY_NAME)]):
        unit = (BY_NAME[known].unit or "") if known in BY_NAME else ""
        # Nobody means a moment by milliseconds.
        own = " ".join(["", *_WORD.findall(known), unit]).lower().removesuffix("epoch ms")
        shared = sum(f" {word}" in own for word in words)
        ratio = difflib.SequenceMatcher(None, name.lower(), known.lower()).ratio()
        if shared or ratio >= _SIMILARITY:
            ranks[known] = (ratio >= _SIMILARITY, shared, ratio)
    alike = ", ".join(
        f'"{it}"' for it in sorted(ranks, key=ranks.__getitem__, reverse=True)[:_MAX_CANDIDATES]
    )
    return _CANDIDATES.sub(lambda _: f"\nCandidate bindings: {alike}" if alike else "", message)


def add_hint(message: str) -> str:
    """Add a sentence on the types of the log's columns, if the statement compared other types with them."""
    hint = next((text for pattern, text in _HINTS if pattern.search(message)), None)
    return message if hint is None else f"{message.rstrip('.')}. {hint}"


def clean_message(message: str, *, roots: Iterable[str] = _ROOTS) -> str:
    """Remove paths below ``roots``, and advice on settings, from a message of DuckDB."""
    for advice in _ADVICE:
        message = advice.sub("", message)
    for root in sorted(roots, key=len, reverse=True):
        if root.startswith("/") and root != "/":
            message = re.sub(rf"(?<![\w/.-]){re.escape(root)}(?:/[^\s'\"/,;:()]+)+", "…", message)
    return message.strip()


def character_offset(text: bytes, offset: int | None) -> int | None:
    """Convert an offset in bytes of UTF-8 to one in characters. Return None if it is outside of the text."""
    if offset is None or not 0 <= offset <= len(text):
        return None
    return len(text[:offset].decode(errors="ignore"))


def with_position(message: str, statement: str, position: int | None) -> str:
    """Add the line and column of a character offset to a message, both counted from 1."""
    if position is None:
        return message
    before = statement[:position]
    line = before.count("\n") + 1
    column = position - (before.rfind("\n") + 1) + 1
    return f"{message} (line {line}, column {column})"
