"""Say what kind of statement was refused, for the message alone: the guard decides by the parse tree.

Contract: "SQL over the log". Words are told from text, names and comments by the engine's own lexer, which
runs nothing. Pure: no Django, no file, no network.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORD: Final = re.compile(rb"[A-Za-z_]+")

#: The characters of an operator; a comment ends one.
_OPERATOR: Final = re.compile(rb"(?:(?!--|/\*)[~!@#^&|`?+*/%<>=-])+")

#: What the parser takes for a space and the lexer alone for a letter.
_SPACE: Final = re.compile("[\u00a0\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff]")

_ONE_SELECT: Final = "Send one SELECT, or WITH … SELECT, over proxy_logs."
_SELECT_ALONE: Final = "Send the SELECT alone."
_OTHER_FORM: Final = f"{_SELECT_ALONE} The header Accept chooses CSV, NDJSON or Parquet for its result."
_VALUES_IN_PLACE: Final = f"{_SELECT_ALONE} Write its values into it."
_FIXED_SETTINGS: Final = f"Settings are fixed. {_ONE_SELECT}"

_CURES: Final = {
    "COPY": _OTHER_FORM,
    "EXECUTE": _VALUES_IN_PLACE,
    "EXPLAIN": _SELECT_ALONE,
    "EXPORT": _OTHER_FORM,
    "PRAGMA": _FIXED_SETTINGS,
    "PREPARE": _VALUES_IN_PLACE,
    "RESET": _FIXED_SETTINGS,
    "SET": _FIXED_SETTINGS,
}

#: Where a query begins. A PIVOT that must look up its values parses as several statements.
_QUERIES: Final = frozenset(
    {"FROM", "PIVOT", "PIVOT_LONGER", "PIVOT_WIDER", "SELECT", "TABLE", "UNPIVOT", "VALUES"}
)

#: What may follow WITH … AS (…).
_AFTER_WITH: Final = _QUERIES | {"DELETE", "INSERT", "MERGE", "UPDATE"}


def find_backquote(text: bytes) -> int | None:
    """Return the offset in bytes of the first backquote that stands outside of text, names and comments."""
    if b"`" not in text:
        return None
    for start, _ in _tokens(text):
        operator = _OPERATOR.match(text, start)
        if operator and b"`" in operator[0]:
            return start + operator[0].index(b"`")
    return None


def describe_statements(text: bytes) -> str:
    """Return a sentence that names what parses but is not a single query, and what to send instead."""
    statements = list(_words_of_statements(text))
    if len(statements) > 1:
        return f"Send one statement, not {len(statements)}."
    words = statements[0] if statements else []
    verb = words[0][0] if words else ""
    if verb == "WITH":
        verb = next((word for word, depth in words if not depth and word in _AFTER_WITH), verb)
    if verb in _QUERIES:
        return "PIVOT needs its values listed: PIVOT … ON column IN ('a', 'b')."
    if not verb:
        return f"This is not allowed. {_ONE_SELECT}"
    return f"{verb} is not allowed. {_CURES.get(verb, _ONE_SELECT)}"


def find_word(text: bytes, word: str) -> list[int]:
    """Return the offsets in bytes of a word, given in capitals, that is a keyword or a bare name."""
    return [start for start, is_word in _tokens(text) if is_word and _word(text, start) == word]


def _words_of_statements(text: bytes) -> Iterator[list[tuple[str, int]]]:
    """Yield the words of each statement that has any, in capitals, with how many parentheses are open."""
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
    found = _WORD.match(text, start)
    return found[0].decode().upper() if found else None


def _tokens(text: bytes) -> Iterator[tuple[int, bool]]:
    """Yield the offset of each token, and whether it may be a word. What cannot be read ends them."""
    # In a query process it is loaded; the service's own processes do not need it for the rest of the guard.
    import _duckdb  # noqa: PLC0415

    kinds = {_duckdb.token_type.keyword, _duckdb.token_type.identifier}
    spaced = _SPACE.sub(lambda space: " " * len(space[0].encode()), text.decode())
    for start, kind in _duckdb.tokenize(spaced):
        yield start, kind in kinds
