"""Quote names and text for DuckDB's SQL. Imports no Django."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def quote_name(name: str) -> str:
    """Return a name as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(value: object) -> str:
    """Return a value as a text literal, for places that take no parameter."""
    return "'" + str(value).replace("'", "''") + "'"


def quote_texts(values: Iterable[object]) -> str:
    """Return values as a list of text literals."""
    return f"[{', '.join(map(quote_text, values))}]"
