"""SQL literals."""

from __future__ import annotations


def quote_text(text: str) -> str:
    """Quote a text as a SQL literal: quotes doubled, nothing else is special in the engine's grammar.

    Raises:
        ValueError: the text holds NUL, at which the engine would stop reading.
    """
    if "\0" in text:
        raise ValueError("a SQL literal cannot hold NUL")
    return "'" + text.replace("'", "''") + "'"
