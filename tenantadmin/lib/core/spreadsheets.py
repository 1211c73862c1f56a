"""Text in CSV files that people open in a spreadsheet."""

from __future__ import annotations

from typing import Final

#: A spreadsheet would take a text that begins so for a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def harmless(value: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return f"'{value}" if value.startswith(_FORMULA) else value
