"""Parameters ``{{name}}`` in statements, filled in as text and never as SQL. Imports no Django."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from logs.quoting import quote_value
from tenantadmin.lib.core.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PARAMETER: Final = r"\{\{\s*([A-Za-z]\w{0,39})\s*\}\}"
_PARAMETERS: Final = re.compile(_PARAMETER, re.ASCII)
#: The parts of a statement, as DuckDB's lexer cuts it. An unclosed quote or comment lasts to the end.
_PARTS: Final = re.compile(
    rf"""
    (?P<comment> --[^\n\r]* )
    | (?P<block> /\* )
    | (?P<escaped> [eE]'(?:[^'\\]|''|\\.)*(?:'|\Z) )
    | (?P<text> '(?:[^']|'')*(?:'|\Z) )
    | (?P<name> "(?:[^"]|"")*(?:"|\Z) )
    | (?P<dollars> \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z) )
    | (?P<word> [^\W\d][\w$]* )
    | (?P<parameter> (?a:{_PARAMETER}) )
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


class ValueMissing(BadRequest):
    """A parameter of the statement has no value."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(f"Give a value for {', '.join(names)}.")


class ParameterMisplaced(BadRequest):
    """A parameter stands where its value could become SQL."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"{{{{name}}}} cannot stand in {place}. Write it where a value belongs, without quotes."
        )


def parameters_of(statement: str) -> list[str]:
    """Return the names of a statement's parameters, each once, in order. Comments have none."""
    return list(
        dict.fromkeys(
            name
            for kind, text in _parts(statement)
            if kind != "comment"
            for name in _PARAMETERS.findall(text)
        )
    )


def fill_parameters(statement: str, values: Mapping[str, str]) -> str:
    """Return a statement with its parameters replaced by their values, as SQL text.

    A value is always text, never SQL: a literal, or a piece of the literal in which the parameter stands.
    DuckDB converts it where a number or a day is needed.

    Raises:
        ValueMissing: a parameter has no value.
        ParameterMisplaced: a parameter stands in a quoted name, or in a literal that is not in plain quotes.
    """
    if missing := [name for name in parameters_of(statement) if not values.get(name)]:
        raise ValueMissing(missing)
    has_escapes = False
    filled = []
    for kind, part in _parts(statement):
        has_escapes = has_escapes or kind == "escaped"
        if kind == "parameter":
            part = _PARAMETERS.sub(lambda match: quote_value(values[match[1]]), part)
        elif kind == "text" and _PARAMETERS.search(part):
            # A literal on the next line continues one with escapes, and has escapes too.
            if has_escapes:
                raise ParameterMisplaced("text after E'…'")
            part = _PARAMETERS.sub(lambda match: _piece(values[match[1]]), part)
        elif kind in _NO_PLACE and _PARAMETERS.search(part):
            raise ParameterMisplaced(_NO_PLACE[kind])
        filled.append(part)
    return "".join(filled)


_NO_PLACE: Final = {"escaped": "E'…'", "name": "a quoted name", "dollars": "$$…$$"}


def _piece(value: str) -> str:
    """Return a value as a piece of a literal in single quotes."""
    if "\0" in value:
        raise ParameterMisplaced("quotes when its value has the character NUL")
    return value.replace("'", "''")


def _parts(statement: str) -> Iterator[tuple[str, str]]:
    """Yield the kinds and texts of the parts of a statement. Joined, they are the statement."""
    at = 0
    while match := _PARTS.match(statement, at):
        kind, end = match.lastgroup or "", match.end()
        if kind == "block":
            kind, end = "comment", _end_of_comment(statement, end)
        yield kind, statement[at:end]
        at = end


def _end_of_comment(statement: str, at: int) -> int:
    """Return where a comment ends whose ``/*`` ends at ``at``. Comments in it have ends of their own."""
    depth = 1
    for match in re.compile(r"/\*|\*/").finditer(statement, at):
        depth += 1 if match[0] == "/*" else -1
        if not depth:
            return match.end()
    return len(statement)
