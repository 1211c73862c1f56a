"""`rules.tables.names` as expressions of DuckDB. Query processes can run them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import re2

from rules.conditions.casefold import fold_case_sql
from rules.conditions.literals import quote_text
from rules.tables.names import DEFAULT_SCHEMA, INNER_DOT, PART, QUOTED, SPACES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rules.tables.names import TablePattern

#: A name without these is its own normal form but for case.
_UNUSUAL: Final = r'["`\[\s]|^\.|\.\.'


def name_sql(text: str, *, database: str = "") -> str:
    """Return SQL for `read_name` of a text. It is null if the text is null."""
    return f"list_transform([{text}], lambda written: {_filled('written', database)})[1]"


def names_sql(tables: str, *, database: str = "") -> str:
    """Return SQL for the distinct names in the JSON text of ``tables``; null if it is null or no array."""
    array = f"CASE WHEN json_valid({tables}) AND json_type({tables}) = 'ARRAY' THEN {tables} END"
    texts = (
        f"list_transform(list_filter(json_extract({array}, '$[*]'), "
        "lambda item: json_type(item) = 'VARCHAR'), lambda item: item->>'$')"
    )
    return f"list_distinct(list_transform({texts}, lambda written: {_filled('written', database)}))"


def _filled(text: str, database: str) -> str:
    is_unusual = f"regexp_matches({text}, {quote_text(_UNUSUAL)})"
    name = f"CASE WHEN {is_unusual} THEN {_read(text)} ELSE {fold_case_sql(text)} END"
    if not database:
        return name
    has_schema = "length(name) - length(replace(name, '.', '')) = 1"
    filled = f"CASE WHEN {has_schema} THEN {quote_text(f'{database}.')} || name ELSE name END"
    return f"list_transform([{name}], lambda name: {filled})[1]"


def _read(text: str) -> str:
    parts = f"regexp_extract_all({text} || '.', {quote_text(PART)}, 1)"
    trimmed = f"list_transform({parts}, lambda part: trim(part, {quote_text(SPACES)}))"
    joined = f"array_to_string(list_transform({trimmed}, lambda part: {_unquoted('part')}), '.')"
    default = f"'..', '.{DEFAULT_SCHEMA}.'"
    return f"replace(replace(ltrim({joined}, '.'), {default}), {default})"


def _unquoted(part: str) -> str:
    cases = "".join(
        f" WHEN regexp_full_match({part}, {quote_text(f'(?s){pattern}')})"
        f" THEN replace(substr({part}, 2, length({part}) - 2), {quote_text(inner * 2)}, {quote_text(inner)})"
        for pattern, inner in QUOTED.values()
    )
    content = f"replace(CASE{cases} ELSE {part} END, '.', '{INNER_DOT}')"
    return f"list_transform([{content}], lambda content: {fold_case_sql('content')})[1]"


def compare_sql(one: str, other: str) -> str:
    """Return SQL for `compare` of two names."""
    return (
        f"CASE WHEN {one} = {other} THEN 'same' WHEN ends_with({one}, '.' || {other})"
        f" OR ends_with({other}, '.' || {one}) THEN 'doubt' ELSE 'different' END"
    )


def may_be_sql(one: str, other: str) -> str:
    """Return SQL that is true if two names are one table or may be. A join on it is fast."""
    # The first part lets DuckDB join by hash.
    return (
        f"split_part({one}, '.', -1) = split_part({other}, '.', -1)"
        f" AND {compare_sql(one, other)} <> 'different'"
    )


def counts_sql(patterns: Iterable[TablePattern], name: str) -> str:
    """Return SQL that is true if a name is one of the tables, or may be."""
    plain: dict[str, None] = {}
    longer: dict[str, None] = {}
    globs: dict[str, None] = {}
    for pattern in patterns:
        if pattern.is_glob:
            globs |= dict.fromkeys(_expressions(pattern))
        else:
            plain |= dict.fromkeys([pattern.name, *pattern.shorter])
            longer[f".{pattern.name}"] = None
    tests = []
    if plain:
        tests.append(f"{name} IN ({', '.join(map(quote_text, plain))})")
        tests += [f"ends_with({name}, {quote_text(text)})" for text in longer]
    if globs:
        tests.append(f"regexp_full_match({name}, {quote_text('|'.join(globs))}, 's')")
    return f"({' OR '.join(tests)})" if tests else "false"


def _expressions(pattern: TablePattern) -> list[str]:
    """Return expressions of RE2. Where a name has fewer parts, a ``*`` matches within a part alone."""
    return [
        rf"(?:.*\.)?{_expression(pattern.name, '.*')}",
        _expression(pattern.written, ".*"),
        *(_expression(shorter, "[^.]*") for shorter in pattern.shorter),
    ]


def _expression(glob: str, any_characters: str) -> str:
    return any_characters.join(re2.escape(piece) for piece in glob.split("*"))
