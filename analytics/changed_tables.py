"""The tables that a statement of the log changes or reads, in Python and in SQL with the same results.

Where a statement leaves a doubt, all its tables count as changed: one too many warns of hits that are fine,
one too few hides stale ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import re2

from logs.quoting import quote_text
from rules.conditions.evaluate import read_table_names
from rules.dialects.text import TABLE_NAME, without_text, without_text_sql
from rules.tables.names import compare, may_be_sql, name_sql, names_sql, read_name

if TYPE_CHECKING:
    from rules.tables.names import TableName

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
        rf"|(?:create|alter|drop|undrop|refresh){_DEFINED}))({TABLE_NAME})",
        # Behind another character, the name goes on in a way that is not known here.
        r"(?:[\s(,;]|$)",
    )
)
#: The beginning of a statement that changes data, and of others that may.
_CHANGES: Final = r"(?:insert|update|delete|merge|truncate)\s"
_STATEMENTS: Final = (
    r"(?:create|alter|drop|undrop|replace|copy|load|refresh|rename|with|begin|declare|call|execute)\s"
)
#: Statements that may change another table too: a list of names, another statement, an exchange, an insert
#: into several tables, a change in a WITH, CASCADE, a flow; and texts whose end is unclear.
_SEVERAL: Final = "|".join(
    (
        r"(?is)'|\$\w*\$|/\*|;[\s;]*[^\s;]",
        rf"\(\s*{_CHANGES}",
        # A change in a WITH that has a WITH of its own.
        rf"(?:^|[()])\s*{_CHANGES}.*[()]\s*{_CHANGES}",
        rf"->>\s*(?:{_CHANGES}|{_STATEMENTS})",
        r"\binto\b.*\binto\b|\binsert\s+overwrite\s.*\binsert\s",
        r"^\s*insert\s+(?:overwrite\s+)?(?:all|first)\s",
        r"^\s*(?:drop|undrop|truncate)\s.*(?:,|\scascade\b)|^\s*alter\s.*\scascade\b",
        rf"^{_WITH}delete\s+(?:from\s+)?(?:only\s+)?{TABLE_NAME}\s*(?:,|\.\s*\*)",
        rf"^{_WITH}(?:(?:delete|update)\s|merge\s.*\soutput\s).*\sinto\s",
        # Before SET, MySQL also has hints and partitions in parentheses.
        rf"^{_WITH}update\s+(?:only\s+)?{TABLE_NAME}(?:[^=(]|\b(?:index|key|partition)\s*\([^)]*\))*?(?:,|\s\w*join\s)",
        rf"^\s*alter{_DEFINED}{TABLE_NAME}\s*,",
        r"^\s*alter\s.*\s(?:swap|rename|exchange|append|inherit|move|switch|attach|detach)\b",
        r"^\s*alter\s.*\s(?:replace\s+(?:partition|with)|set\s+schema)\b",
    )
)
_COMPILED: Final = re2.compile(_TARGET)
_COMPILED_SEVERAL: Final = re2.compile(_SEVERAL)


def read_tables(text: str | None, *, database: str = "") -> frozenset[TableName]:
    """Return the table names in the JSON text of the column ``tables``."""
    names = None if text is None else read_table_names(text)
    return frozenset(read_name(name, database=database) for name in names or ())


def find_changed_tables(
    statement: str, tables: frozenset[TableName], *, database: str = ""
) -> frozenset[TableName]:
    """Return the tables of a statement that are its target or may be, or all its tables.

    All, if the target is none of them, or if the statement may change other tables too. Of two names of one
    table, the longer one is returned.
    """
    plain = without_text(statement)
    match = None if _COMPILED_SEVERAL.search(plain) else _COMPILED.match(plain)
    if match is None:
        return tables
    target = read_name(match[1], database=database)
    return frozenset(max(name, target, key=len) for name in tables if compare(name, target).counts) or tables


def changed_sql(statement: str, tables: str, *, database: str = "") -> str:
    """Return SQL for `find_changed_tables` of the columns ``statement`` and ``tables``, as a list."""
    names = names_sql(tables, database=database)
    target = name_sql(f"nullif(regexp_extract(text, {quote_text(_TARGET)}, 1), '')", database=database)
    single = f"CASE WHEN NOT regexp_matches(text, {quote_text(_SEVERAL)}) THEN {target} END"
    targets = f"list_transform([{without_text_sql(statement)}], lambda text: {single})"
    longer = "CASE WHEN length(name) < length(read.target) THEN read.target ELSE name END"
    chosen = (
        f"list_transform(list_filter(read.names, lambda name: {may_be_sql('name', 'read.target')}), "
        f"lambda name: {longer})"
    )
    changed = f"CASE WHEN len({chosen}) > 0 THEN {chosen} ELSE read.names END"
    return f"list_transform([{{'names': {names}, 'target': {targets}[1]}}], lambda read: {changed})[1]"
