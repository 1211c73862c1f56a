"""Remove comments and literals from statements of the log, in Python and in SQL with the same results.

Statements are in the SQL of any warehouse, so no parser reads them all.
"""

from __future__ import annotations

from typing import Final

import re2

from logs.quoting import quote_text

_NAME: Final = r'"(?:[^"]|"")*"|`[^`]*`'
_BRACKETS: Final = r"\[[^\]]*\]"
#: Text without a backslash, which is an escape in some warehouses alone; and comments.
_OTHER: Final = r"'(?:[^'\\]|'')*'|--[^\n]*|//[^\n]*|/\*(?s:[^!].*?)?\*/"

#: Group 1 is a quoted name.
_TEXT_AND_COMMENTS: Final = f"({_NAME}|{_BRACKETS})|{_OTHER}"
_NAMES_TOO: Final = f"{_NAME}|{_OTHER}"

_COMPILED: Final = re2.compile(_TEXT_AND_COMMENTS)
_NAMES_TOO_COMPILED: Final = re2.compile(_NAMES_TOO)


def without_text(statement: str) -> str:
    """Return a statement without literals of text and comments.

    A quote, ``$$`` or ``/*`` is left where it is unclear where a literal or a comment ends.
    """
    return str(_COMPILED.sub(r"\1 ", statement))


def without_text_sql(statement: str) -> str:
    """Return SQL for `without_text` of a column."""
    return rf"regexp_replace({statement}, {quote_text(_TEXT_AND_COMMENTS)}, '\1 ', 'g')"


def without_names(statement: str) -> str:
    """Return a statement without literals of text, comments and quoted names."""
    return str(_NAMES_TOO_COMPILED.sub(" ", statement))


def without_names_sql(statement: str) -> str:
    """Return SQL for `without_names` of a column."""
    return f"regexp_replace({statement}, {quote_text(_NAMES_TOO)}, ' ', 'g')"
