"""Names as the engine compares them. Pure."""

from __future__ import annotations

from typing import Final

#: The one relation that a query may read.
RELATION: Final = "proxy_logs"

_ASCII_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def fold(name: str) -> str:
    """Fold case as the engine does: ASCII letters and nothing else."""
    return name.translate(_ASCII_LOWER)


def quote_name(name: str) -> str:
    """Return an identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return a string literal."""
    return "'" + text.replace("'", "''") + "'"
