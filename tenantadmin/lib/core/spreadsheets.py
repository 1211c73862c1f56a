"""Text in CSV files that people open in a spreadsheet."""

from __future__ import annotations

from typing import Final

#: A spreadsheet reads a text with one of these first characters as a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def harmless(value: str) -> str:
    """Return the text in a form that no spreadsheet reads as a formula."""
    return f"'{value}" if value.startswith(_FORMULA) else value
