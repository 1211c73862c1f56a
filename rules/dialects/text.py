"""Remove comments and literals from statements of the log, and find their tables, in Python and in SQL.

Statements are in the SQL of any warehouse, so no parser reads them all.

Which table they mean depends on the session: on its search path, schema or database.
"""

from __future__ import annotations

from typing import Final

import re2

from rules.conditions.sql import quote_text

#: How deep comments may be nested. PostgreSQL and Databricks nest them, Snowflake does not.
_DEPTH: Final = 6


def _nested_comment() -> str:
    pieces = r"[^/*]|\*+[^/*]|/+[^/*]"
    comment = rf"/\*(?:{pieces})*\*+/"
    for _ in range(_DEPTH):
        comment = rf"/\*(?:{pieces}|/*{comment})*\*+/"
    # MySQL runs what is in a comment that begins with an exclamation mark.
    first = pieces.replace("[^/*]", "[^/*!]", 1)
    return rf"/\*(?:(?:{first}|/*{comment})(?:{pieces}|/*{comment})*)?\*+/"


#: The quoted names that a name can be, each with the quote doubled for one inside.
QUOTED_NAME: Final = r'"(?:[^"]|"")+"|`(?:[^`]|``)+`'

_NAME: Final = rf'{QUOTED_NAME}|""|``|\[[^\]]*\]'

#: Warehouses differ in which characters beyond ASCII a name may have, so all belong to it.
_PART: Final = rf"(?:{QUOTED_NAME}|\[[^\]]+\]|(?:[\w$#@-]|[^\x00-\x7f])+)"

#: The name of a table: up to four parts, each of which may be quoted. Snowflake and SQL Server may omit
#: a schema (``db..t``).
TABLE_NAME: Final = rf"{_PART}(?:\s*\.(?:\s*\.)?\s*{_PART}){{0,3}}"

#: Text without a backslash, which is an escape in some warehouses alone; and comments. A comment whose inner
#: comments do not all end is one of Snowflake, which the first ``*/`` ends.
_TEXT: Final = r"'(?:[^'\\]|'')*'"
_COMMENT: Final = rf"{_nested_comment()}|/\*(?s:[^!].*?)?\*/"
_OTHER: Final = rf"{_TEXT}|--[^\r\n]*|//[^\r\n]*|{_COMMENT}"

#: Group 1 is a quoted name.
_TEXT_AND_COMMENTS: Final = f"({_NAME})|{_OTHER}"

_COMPILED: Final = re2.compile(_TEXT_AND_COMMENTS)


def without_text(statement: str) -> str:
    """Return a statement without literals of text and comments.

    A quote, ``$$`` or ``/*`` is left where it is unclear where a literal or a comment ends.
    """
    return str(_COMPILED.sub(r"\1 ", statement))


def without_text_sql(statement: str) -> str:
    """Return SQL for `without_text` of a column."""
    return rf"regexp_replace({statement}, {quote_text(_TEXT_AND_COMMENTS)}, '\1 ', 'g')"


#: Group 1 is a quoted name or a text. What follows ``//`` is a comment of Snowflake alone.
_COMMENTS: Final = rf"({_NAME}|{_TEXT})|(?:--[^\r\n]*|{_COMMENT})"


def without_comments_sql(statement: str) -> str:
    """Return SQL for the statements of a column without comments; null for those without, or with a hint."""
    return (
        f"CASE WHEN regexp_matches({statement}, '/\\*|--') AND NOT contains({statement}, '/*+') "
        rf"THEN trim(regexp_replace({statement}, {quote_text(_COMMENTS)}, '\1', 'g')) END"
    )


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
