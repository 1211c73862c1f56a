"""Names of tables without a schema, in SQL.

Which table they mean depends on the session: on its search path, schema or database.
"""

from __future__ import annotations

from typing import Final

from rules.conditions.literals import quote_text

#: The caveat of results that several users share.
WITHOUT_SCHEMA: Final = "tables-without-schema"
#: An element of a JSON array of texts without a dot, quoted names included.
_NO_DOT: Final = r'[\[,]\s*"(?:[^".\\]|\\.)+"'


def names_schema(name: str) -> bool:
    """Return True if the name of a table has a schema."""
    return "." in name


def names_no_schema_sql(tables: str) -> str:
    """Return SQL for whether the column ``tables``, JSON text, has a name without a schema."""
    return f"coalesce(regexp_matches({tables}, {quote_text(_NO_DOT)}), false)"
