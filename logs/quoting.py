"""Quote names and text for DuckDB's SQL. Imports no Django."""

from __future__ import annotations

from collections.abc import Iterable


def quote_name(name: str) -> str:
    """Return a name as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(value: object) -> str:
    """Return a value as a text literal, for places that take no parameter."""
    return "'" + str(value).replace("'", "''") + "'"


def quote_value(value: str | None) -> str:
    """Return an expression for a text or null. Unlike a literal, it can contain NUL."""
    if value is None:
        return "NULL"
    return "(" + " || chr(0) || ".join(quote_text(part) for part in value.split("\0")) + ")"


def quote_texts(values: Iterable[object]) -> str:
    """Return values as a list of text literals."""
    return f"[{', '.join(map(quote_text, values))}]"
