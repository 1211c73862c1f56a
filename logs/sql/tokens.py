"""Search the tokens of a statement for backquotes, and describe a refused statement.

Contract: "SQL over the log". DuckDB's lexer tells words from text, names and comments; it runs nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORD: Final = re.compile(rb"[A-Za-z_]+")

#: The characters of an operator, up to a comment.
_OPERATOR: Final = re.compile(rb"(?:(?!--|/\*)[~!@#^&|`?+*/%<>=-])+")

#: Characters that DuckDB's parser reads as a space, but its lexer as a letter.
_UNICODE_SPACE: Final = re.compile("[\u00a0\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff]")

_SEND_ONE_SELECT: Final = "Send one SELECT, or WITH … SELECT, over proxy_logs."
_SEND_SELECT_ALONE: Final = "Send the SELECT alone."
_USE_ACCEPT: Final = f"{_SEND_SELECT_ALONE} The header Accept chooses CSV, NDJSON or Parquet for its result."
_USE_VALUES: Final = f"{_SEND_SELECT_ALONE} Write its values into it."
_SETTINGS_ARE_FIXED: Final = f"Settings are fixed. {_SEND_ONE_SELECT}"

_HINTS: Final = {
    "COPY": _USE_ACCEPT,
    "EXECUTE": _USE_VALUES,
    "EXPLAIN": _SEND_SELECT_ALONE,
    "EXPORT": _USE_ACCEPT,
    "PRAGMA": _SETTINGS_ARE_FIXED,
    "PREPARE": _USE_VALUES,
    "RESET": _SETTINGS_ARE_FIXED,
    "SET": _SETTINGS_ARE_FIXED,
}

#: First words of a query. A PIVOT without listed values is parsed as several statements.
_QUERY_WORDS: Final = frozenset(
    {"FROM", "PIVOT", "PIVOT_LONGER", "PIVOT_WIDER", "SELECT", "TABLE", "UNPIVOT", "VALUES"}
)

#: Words that may follow WITH … AS (…).
_WORDS_AFTER_WITH: Final = _QUERY_WORDS | {"DELETE", "INSERT", "MERGE", "UPDATE"}


def find_backquote(text: bytes) -> int | None:
    """Return the offset in bytes of the first backquote outside of text, names and comments."""
    if b"`" not in text:
        return None
    for start, _ in _tokens(text):
        operator = _OPERATOR.match(text, start)
        if operator and b"`" in operator[0]:
            return start + operator[0].index(b"`")
    return None


def describe_statements(text: bytes) -> str:
    """Return a message about a text that is not a single query: what it is, and what to send instead."""
    statements = list(_words_of_statements(text))
    if len(statements) > 1:
        return f"Send one statement, not {len(statements)}."
    words = statements[0] if statements else []
    verb = words[0][0] if words else ""
    if verb == "WITH":
        verb = next((word for word, depth in words if not depth and word in _WORDS_AFTER_WITH), verb)
    if verb in _QUERY_WORDS:
        return "PIVOT needs its values listed: PIVOT … ON column IN ('a', 'b')."
    if not verb:
        return f"This is not allowed. {_SEND_ONE_SELECT}"
    return f"{verb} is not allowed. {_HINTS.get(verb, _SEND_ONE_SELECT)}"


def find_word(text: bytes, word: str) -> list[int]:
    """Return the offsets in bytes of ``word``, given in capitals, as a keyword or an unquoted name."""
    return [start for start, is_word in _tokens(text) if is_word and _word(text, start) == word]


def _words_of_statements(text: bytes) -> Iterator[list[tuple[str, int]]]:
    """Yield the words of each statement in capitals, each with the number of open parentheses before it.

    A statement without words is left out.
    """
    words: list[tuple[str, int]] = []
    depth = 0
    for start, is_word in _tokens(text):
        match text[start : start + 1]:
            case b"(":
                depth += 1
            case b")":
                depth -= 1
            case b";":
                if words:
                    yield words
                words = []
            case _:
                if is_word and (word := _word(text, start)):
                    words.append((word, depth))
    if words:
        yield words


def _word(text: bytes, start: int) -> str | None:
    match = _WORD.match(text, start)
    return match[0].decode().upper() if match else None


def _tokens(text: bytes) -> Iterator[tuple[int, bool]]:
    """Yield the offset of each token, and whether it may be a word. Stop at what the lexer cannot read."""
    # Query processes have it loaded. The service's own processes import the guard but need no DuckDB for it.
    import _duckdb  # noqa: PLC0415

    word_kinds = {_duckdb.token_type.keyword, _duckdb.token_type.identifier}
    with_ascii_spaces = _UNICODE_SPACE.sub(lambda space: " " * len(space[0].encode()), text.decode())
    for start, kind in _duckdb.tokenize(with_ascii_spaces):
        yield start, kind in word_kinds
