"""The normal form of names of tables, and the one comparison, in Python and as expressions of DuckDB.

A log, a statement and a configuration spell one table in many ways: ``hr.people``, ``"HR"."PEOPLE"``,
``prod.hr.people``, ``people``. Conditions of rules do not use this module: they compare the text of the log,
as every Gateway does.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NewType

import re2

from rules.conditions.patterns import fold_case, fold_case_sql, glob_matches
from rules.conditions.sql import quote_text

#: A name in its normal form: parts with a dot between them, without quotes, folded.
TableName = NewType("TableName", str)

SPACES: Final = " \t\n\r\f\v"

#: By the quote that begins a part: the part as a whole, and the quote in it that is written twice.
QUOTED: Final = {
    '"': (r'"(?:[^"]|"")*"', '"'),
    "`": (r"`(?:[^`]|``)*`", "`"),
    "[": (r"\[(?:[^\]]|\]\])*\]", "]"),
}

_ANY_QUOTED: Final = "|".join(pattern for pattern, _ in QUOTED.values())

#: One part of a name that ends with a dot. A dot in quotes does not end a part. In the syntax of RE2 too.
PART: Final = rf"([ \t\n\r\f\v]*(?:{_ANY_QUOTED})[ \t\n\r\f\v]*|[^.]*)\."

#: Stands for a dot in a quoted part, which is no end of a part.
INNER_DOT: Final = "\u2024"

#: What an empty part is: Snowflake's ``db..t`` is ``db.public.t``.
DEFAULT_SCHEMA: Final = "public"

_PART: Final = re.compile(PART)

_QUOTED: Final = {quote: (re.compile(pattern), inner) for quote, (pattern, inner) in QUOTED.items()}

#: The parts of a name to which the configured database is added.
_WITHOUT_DATABASE: Final = 2


class Likeness(StrEnum):
    """Whether two names are one table. A doubt counts as read, changed, personal and invalidated."""

    SAME = "same"
    DOUBT = "doubt"
    DIFFERENT = "different"

    @property
    def counts(self) -> bool:
        return self is not Likeness.DIFFERENT


def read_name(text: str, *, database: str = "") -> TableName:
    """Return the normal form of a name.

    Args:
        database: the normal form of the configured database. A name with a schema and without a database is
            in it. A name without a schema stays as it is, because a session may set another.
    """
    joined = ".".join(map(_read_part, _PART.findall(f"{text}.")))
    # Twice, because the dots of two empty parts overlap.
    name = joined.lstrip(".").replace("..", f".{DEFAULT_SCHEMA}.").replace("..", f".{DEFAULT_SCHEMA}.")
    return TableName(f"{database}.{name}" if database and name.count(".") + 1 == _WITHOUT_DATABASE else name)


def _read_part(written: str) -> str:
    part = written.strip(SPACES)
    pattern, inner = _QUOTED.get(part[:1], (None, ""))
    if pattern is not None and pattern.fullmatch(part):
        part = part[1:-1].replace(inner * 2, inner)
    return fold_case(part).replace(".", INNER_DOT)


def compare(one: TableName, other: TableName) -> Likeness:
    """Compare two names from the right. If one has fewer parts, it is a doubt."""
    if one == other:
        return Likeness.SAME
    if one.endswith(f".{other}") or other.endswith(f".{one}"):
        return Likeness.DOUBT
    return Likeness.DIFFERENT


@dataclass(frozen=True, slots=True)
class TablePattern:
    """A name in which ``*`` matches any characters, also in several parts of a name.

    Attributes:
        written: the normal form without the configured database.
        name: the normal form.
    """

    written: str
    name: TableName

    @classmethod
    def of(cls, text: str, *, database: str = "") -> TablePattern:
        return cls(read_name(text), read_name(text, database=database))

    @property
    def is_glob(self) -> bool:
        return "*" in self.name

    @property
    def shorter(self) -> list[str]:
        """The pattern without its first part, without its first two parts, and so on."""
        return list(_ends(self.name))

    def compare(self, name: TableName) -> Likeness:
        """Compare a name. Where the name has fewer parts, a ``*`` matches within a part alone."""
        if not self.is_glob:
            return compare(self.name, name)
        if glob_matches(self.name, name) or glob_matches(self.written, name):
            return Likeness.SAME
        if any(glob_matches(self.name, end) for end in _ends(name)):
            return Likeness.DOUBT
        own, other = (text.split(".")[::-1] for text in (self.name, name))
        if len(other) < len(own) and all(map(glob_matches, own, other)):
            return Likeness.DOUBT
        return Likeness.DIFFERENT


def is_any(name: TableName, patterns: Iterable[TablePattern]) -> bool:
    """Return True if a name is one of the tables, or may be."""
    return any(pattern.compare(name).counts for pattern in patterns)


class NameIndex:
    """Names by their last part, to find those that may be one table."""

    def __init__(self, names: Iterable[TableName]) -> None:
        self._by_last: dict[str, list[TableName]] = defaultdict(list)
        for name in names:
            self._by_last[last_part(name)].append(name)

    def find_any(self, names: Iterable[TableName]) -> frozenset[TableName]:
        """Return the names of the index that are one of ``names``, or may be."""
        return frozenset(
            known
            for name in names
            for known in self._by_last.get(last_part(name), ())
            if compare(known, name).counts
        )


def last_part(name: str) -> str:
    """Return the table alone. Names with different last parts are different tables."""
    return name.rpartition(".")[2]


def _ends(name: str) -> Iterator[str]:
    while "." in name:
        name = name.partition(".")[2]
        yield name


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
