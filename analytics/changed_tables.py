"""The tables that a statement of the log changes or reads, in Python and in SQL with the same results.

Where a statement leaves a doubt, all its tables count as changed: one too many warns of hits that are fine,
one too few hides stale ones.

Names are compared without case and quotes.
"""

from __future__ import annotations

import re
from typing import Final

import re2

from analytics.statement_text import without_text, without_text_sql
from logs.quoting import quote_text
from rules.conditions.casefold import fold_case, fold_case_sql
from rules.conditions.request import read_table_names

_QUOTES: Final = '"`[]'
_WITHOUT_QUOTES: Final = str.maketrans("", "", _QUOTES)

#: A name of up to four parts. Each part may be quoted.
_PART: Final = r'(?:"[^"]+"|`[^`]+`|\[[^\]]+\]|[\pL\pN_$#@-]+)'
_NAME: Final = rf"{_PART}(?:\s*\.\s*{_PART}){{0,3}}"
_WITH: Final = r"\s*(?:with\s.*?\)\s*)?"
#: What creates, alters or drops a table or view, up to its name.
_DEFINED: Final = (
    r"\s+(?:or\s+replace\s+)?"
    r"(?:(?:global|local|temp|temporary|transient|dynamic|external|foreign|unlogged|secure|materialized)\s+)*"
    r"(?:table|view)\s+(?:if\s+(?:not\s+)?exists\s+)?(?:only\s+)?"
)
#: The table that a statement without texts and comments names first as changed; group 1 is its name.
#: In the syntax of RE2, for DuckDB.
_TARGET: Final = "".join(
    (
        rf"(?is)^(?:{_WITH}(?:",
        r"insert\s+(?:(?:ignore|overwrite|or\s+\w+)\s+)?(?:into\s+)?(?:table\s+)?",
        r"|update\s+(?:only\s+)?|delete\s+(?:from\s+)?(?:only\s+)?",
        r"|merge\s+(?:with\s+schema\s+evolution\s+)?(?:into\s+)?)",
        r"|\s*(?:replace\s+(?:into\s+)?|copy\s+(?:into\s+)?|load\s+data.*?\sinto\s+table\s+",
        r"|truncate\s+(?:table\s+)?(?:if\s+exists\s+)?(?:only\s+)?",
        rf"|(?:create|alter|drop|undrop|refresh){_DEFINED}))({_NAME})",
    )
)
#: Statements that may change another table too: a list of names, another statement, an exchange, an insert
#: into several tables, a change in a WITH, CASCADE; and texts whose end is unclear.
_SEVERAL: Final = "|".join(
    (
        r"(?is)'|\$\w*\$|/\*|;[\s;]*[^\s;]",
        r"\(\s*(?:insert|update|delete|merge|truncate)\s",
        r"\binto\b.*\binto\b|\binsert\s+overwrite\s.*\binsert\s",
        r"^\s*insert\s+(?:overwrite\s+)?(?:all|first)\s",
        r"^\s*(?:drop|undrop|truncate)\s.*(?:,|\scascade\b)",
        rf"^{_WITH}delete\s+(?:from\s+)?(?:only\s+)?{_NAME}\s*(?:,|\.\s*\*)",
        rf"^{_WITH}(?:(?:delete|update)\s|merge\s.*\soutput\s).*\sinto\s",
        # Before SET, MySQL also has hints and partitions in parentheses.
        rf"^{_WITH}update\s+(?:only\s+)?{_NAME}(?:[^=(]|\b(?:index|key|partition)\s*\([^)]*\))*?(?:,|\s\w*join\s)",
        rf"^\s*alter{_DEFINED}{_NAME}\s*,",
        r"^\s*alter\s.*\s(?:swap|rename|exchange|append|inherit|move|switch|attach|detach)\b",
        r"^\s*alter\s.*\s(?:replace\s+(?:partition|with)|set\s+schema)\b",
    )
)
_COMPILED: Final = re2.compile(_TARGET)
_COMPILED_SEVERAL: Final = re2.compile(_SEVERAL)
_AROUND_DOTS: Final = r"\s*\.\s*"


def read_tables(text: str | None) -> frozenset[str]:
    """Return the table names in the JSON text of the column ``tables``."""
    names = None if text is None else read_table_names(text)
    return frozenset(map(plain_name, names or ()))


def find_changed_tables(statement: str, tables: frozenset[str]) -> frozenset[str]:
    """Return the target table of a statement, or all its tables.

    All, if the target is not one of them, or if the statement may change other tables too.
    """
    plain = without_text(statement)
    match = None if _COMPILED_SEVERAL.search(plain) else _COMPILED.match(plain)
    target = plain_name(re.sub(_AROUND_DOTS, ".", match[1])) if match else None
    return frozenset({target}) if target and target in tables else tables


def plain_name(name: str) -> str:
    """Return the name of a table without case and quotes."""
    return fold_case(name.translate(_WITHOUT_QUOTES))


def target_sql(statement: str) -> str:
    """Return SQL for the table that the column ``statement`` changes, or null if it may change others."""
    written = f"regexp_extract(text, {quote_text(_TARGET)}, 1)"
    name = _plain_sql(f"regexp_replace({written}, {quote_text(_AROUND_DOTS)}, '.', 'g')")
    target = f"CASE WHEN NOT regexp_matches(text, {quote_text(_SEVERAL)}) THEN nullif({name}, '') END"
    return f"list_transform([{without_text_sql(statement)}], lambda text: {target})[1]"


def tables_sql(tables: str) -> str:
    """Return SQL for the list of the names in the column ``tables``."""
    names = f"json_extract_string(CASE WHEN json_valid({tables}) THEN {tables} END, '$[*]')"
    return f"list_transform({names}, lambda name: {_plain_sql('name')})"


def _plain_sql(name: str) -> str:
    unquoted = f"translate({name}, {quote_text(_QUOTES)}, '')"
    return f"list_transform([{unquoted}], lambda unquoted: {fold_case_sql('unquoted')})[1]"
