"""Statements about the session, its transaction or an open result. They read no table, and no cache has them.

`docs/gateway.md` says what a Gateway does with each, and which status it logs.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from rules.dialects.words import Dialect


class Control(StrEnum):
    """What a control statement changes or reads. The values are the ``cacheStatus`` that a Gateway logs.

    Attributes:
        SESSION: the transaction, or a setting of the session.
        RESULT: further rows of an open result.
    """

    SESSION = "SPOOFED"
    RESULT = "EXECUTOR"


_SESSION: Final = frozenset(
    (
        *("BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE"),
        *("SET", "UNSET", "RESET", "USE", "DISCARD", "DEALLOCATE", "LISTEN", "UNLISTEN"),
    )
)
_RESULT: Final = frozenset(("FETCH", "MOVE", "CLOSE"))
#: What asyncpg sends with ``RESET ALL`` whenever a connection goes back to its pool.
_UNLOCK: Final = re.compile(r"\s*SELECT\s+pg_advisory_unlock_all\(\)\s*", re.IGNORECASE)
#: White space and comments, then the first two words.
_FIRST: Final = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*(?s:.*?)\*/)*([A-Za-z]+)(?:\s+([A-Za-z]+))?")


def find_control(text: str, dialect: Dialect) -> tuple[Control, str] | None:
    """Return what a control statement is about, and its ``statementType``; None for other statements.

    Of several statements in one text, all must be control statements.
    """
    if ";" in text:
        # A semicolon may be part of a text in quotes.
        parts = [part for part in text.split(";") if part.strip()]
        found = [_find_one(part, dialect) for part in parts]
        is_clear = len(parts) == 1 or not set("'\"$") & set(text)
        return found[0] if found and all(found) and is_clear else None
    return _find_one(text, dialect)


def _find_one(text: str, dialect: Dialect) -> tuple[Control, str] | None:
    if _UNLOCK.fullmatch(text):
        return Control.SESSION, "SELECT"
    match = _FIRST.match(text)
    if match is None:
        return None
    first, second = match[1].upper(), (match[2] or "").upper()
    if first == "ALTER" and second == "SESSION":
        return Control.SESSION, "ALTER SESSION"
    # Elsewhere, SHOW lists tables.
    if first in _SESSION or (first == "SHOW" and dialect is Dialect.POSTGRESQL):
        return Control.SESSION, first
    return (Control.RESULT, first) if first in _RESULT else None
