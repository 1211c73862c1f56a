"""SQL literals."""

from __future__ import annotations


def quote_text(text: str) -> str:
    """Return a text as a SQL literal. In DuckDB, only quotes need escaping.

    Raises:
        ValueError: the text contains NUL, where DuckDB would stop reading.
    """
    if "\0" in text:
        raise ValueError("a SQL literal cannot contain NUL")
    return "'" + text.replace("'", "''") + "'"
