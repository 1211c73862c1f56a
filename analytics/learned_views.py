"""The views that a log creates with ``CREATE VIEW … AS``, in Python and in SQL with the same results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import re2

from logs.quoting import quote_text
from rules.dialects.text import TABLE_NAME, without_text, without_text_sql
from rules.tables.names import name_sql, read_name
from rules.tables.warehouse import Views

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rules.tables.names import TableName
    from rules.tables.warehouse import WarehouseTables

#: Group 1 is the name of the view. In the syntax of RE2, for DuckDB.
_VIEW: Final = (
    r"(?is)^\s*(?:create|alter)\s+(?:or\s+(?:replace|alter|refresh)\s+)?"
    r"(?:(?:global|local|temp|temporary|secure|recursive|materialized|live|streaming|force)\s+)*"
    rf"view\s+(?:if\s+not\s+exists\s+)?({TABLE_NAME})\s.*\bas\b"
)
_DEFINES: Final = r"(?i)^\s*(?:create|alter|drop|undrop|refresh|rename)\b"
_COMPILED_DEFINES: Final = re2.compile(_DEFINES)
_COMPILED: Final = re2.compile(_VIEW)


def find_view(statement: str, *, database: str = "") -> TableName | None:
    """Return the name of the view that a statement defines. It reads the other tables of the statement."""
    match = _COMPILED.match(without_text(statement))
    return read_name(match[1], database=database) if match else None


def view_sql(statement: str, *, database: str = "") -> str:
    """Return SQL for `find_view` of a column."""
    name = name_sql(f"nullif(regexp_extract(text, {quote_text(_VIEW)}, 1), '')", database=database)
    return f"list_transform([{without_text_sql(statement)}], lambda text: {name})[1]"


def defines(statement: str) -> bool:
    """Return True if a statement defines, alters or drops something: no rows of what a view reads change."""
    return _COMPILED_DEFINES.match(without_text(statement)) is not None


def defines_sql(statement: str) -> str:
    """Return SQL for `defines` of a column."""
    return f"regexp_matches({without_text_sql(statement)}, {quote_text(_DEFINES)})"


def learn_views(statements: Iterable[tuple[str, frozenset[TableName]]], warehouse: WarehouseTables) -> Views:
    """Return the configured views, and those that statements with these tables define.

    A view that is in the configuration is as it says there.
    """
    configured = frozenset(warehouse.read(view) for view, _ in warehouse.views)
    pairs = warehouse.view_pairs
    for statement, tables in statements:
        view = find_view(statement, database=warehouse.database)
        if view is not None and view not in configured:
            pairs += [(view, table) for table in tables if table != view]
    return Views(pairs)
