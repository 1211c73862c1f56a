"""The tables that a statement of the log changes or reads, in Python and in SQL with the same results.

Names are compared in lower case and without quotes.
"""

from __future__ import annotations

import re
from typing import Final

import re2

from logs.quoting import quote_text
from rules.conditions.request import read_table_names

_QUOTES: Final = '"`[]'

#: A name of up to four parts. Each part may be quoted.
_PART: Final = r'(?:"[^"]+"|`[^`]+`|\[[^\]]+\]|[\pL\pN_$#@-]+)'
#: The target table of a statement; group 1 is its name. In the syntax of RE2, for DuckDB.
_TARGET: Final = "".join(
    (
        r"(?is)^\s*(?:",
        r"insert\s+(?:(?:ignore|overwrite|or\s+\w+)\s+)?(?:into\s+)?(?:table\s+)?",
        r"|replace\s+(?:into\s+)?|update\s+(?:only\s+)?",
        r"|delete\s+(?:from\s+)?(?:only\s+)?",
        r"|merge\s+(?:into\s+)?|copy\s+(?:into\s+)?|load\s+data.*?\sinto\s+table\s+",
        r"|truncate\s+(?:table\s+)?(?:only\s+)?",
        r"|(?:create|alter|drop|undrop|rename|refresh)\s+(?:or\s+replace\s+)?",
        r"(?:(?:global|local|temp|temporary|transient|external|unlogged|materialized)\s+)*",
        r"(?:table|view)\s+(?:if\s+(?:not\s+)?exists\s+)?(?:only\s+)?",
        rf")({_PART}(?:\s*\.\s*{_PART}){{0,3}})",
    )
)
_COMPILED: Final = re2.compile(_TARGET)
_AROUND_DOTS: Final = r"\s*\.\s*"


def read_tables(text: str | None) -> frozenset[str]:
    """Return the table names in the JSON text of the column ``tables``."""
    names = None if text is None else read_table_names(text)
    return frozenset(map(_plain, names or ()))


def find_changed_tables(statement: str, tables: frozenset[str]) -> frozenset[str]:
    """Return the target table of a statement, or all its tables if the target is not one of them."""
    match = _COMPILED.match(statement)
    target = _plain(re.sub(_AROUND_DOTS, ".", match[1])) if match else None
    return frozenset({target}) if target and target in tables else tables


def _plain(name: str) -> str:
    return name.translate(dict.fromkeys(map(ord, _QUOTES))).lower()


def target_sql(statement: str) -> str:
    """Return SQL for the name of the target table of the column ``statement``, or null."""
    target = f"regexp_extract({statement}, {quote_text(_TARGET)}, 1)"
    name = _plain_sql(f"regexp_replace({target}, {quote_text(_AROUND_DOTS)}, '.', 'g')")
    return f"nullif({name}, '')"


def tables_sql(tables: str) -> str:
    """Return SQL for the list of the names in the column ``tables``."""
    names = f"json_extract_string(CASE WHEN json_valid({tables}) THEN {tables} END, '$[*]')"
    return f"list_transform({names}, lambda name: {_plain_sql('name')})"


def _plain_sql(name: str) -> str:
    return f"translate(lower({name}), {quote_text(_QUOTES)}, '')"
