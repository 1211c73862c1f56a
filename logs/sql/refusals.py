"""Refusals of the guard and messages of DuckDB, for users: what is wrong with a statement, and where.

Contract: "SQL over the log". DuckDB's lexer tells words from text, names and comments; it runs nothing.
"""

from __future__ import annotations

import difflib
import os.path
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from logs.columns import BY_NAME
from logs.sql import grammar

NESTED_ENUM: Final = (
    "A type with values, such as ENUM('a', 'b'), is not supported inside another type. Cast the values alone:"
    " list_transform(x, lambda v: v::ENUM('a', 'b')) or struct_pack(k := x.k::ENUM('a', 'b'));"
    " or use VARCHAR."
)

#: The way for tools of business intelligence, which first ask for the version and the tables.
COLUMNS_HINT: Final = (
    "GET /tenants/{tenant}/query/schema lists the columns of proxy_logs; the SQLAlchemy dialect of the"
    " documentation answers what tools ask first."
)

_ASKED_BY_TOOLS: Final = frozenset(
    {"version", "current_schema", "current_schemas", "current_database", "current_catalog"}
    | {"duckdb_columns", "duckdb_tables", "duckdb_schemas", "duckdb_databases", "pragma_table_info", "show"}
)

CATALOGS: Final = frozenset({"sqlite_master", "sqlite_schema", "duckdb_tables", "duckdb_columns"}) | {
    f"pg_{name}" for name in ("attribute", "class", "database", "namespace", "tables", "type", "views")
}

#: What to write for functions of other engines.
_INSTEAD: Final = {
    "add_months": "time + INTERVAL 1 MONTH",
    "approx_percentile": "approx_quantile(value, 0.95)",
    "array_size": "len(list)",
    "charindex": "strpos(text, part)",
    "collect_list": "list(value)",
    "collect_set": "list(DISTINCT value)",
    "convert": "CAST(value AS type)",
    "convert_timezone": "timezone(zone, time)",
    "current_timestamp": "current_timestamp without parentheses, or now()",
    "date_format": "strftime(time, '%Y-%m-%d')",
    "date_parse": "strptime(text, '%Y-%m-%d')",
    "dateadd": "time + INTERVAL 1 DAY",
    "div0": "value / nullif(other, 0)",
    "eomonth": "last_day(time)",
    "explode": "unnest(list)",
    "from_iso8601_timestamp": "CAST(text AS TIMESTAMPTZ)",
    "from_unixtime": "to_timestamp(seconds); for the column timestamp, to_timestamp(timestamp / 1000)",
    "get_json_object": "json_extract_string(text, '$.name')",
    "getdate": "now(), or current_date for the day",
    "getutcdate": "now(), or current_date for the day",
    "iff": "if(condition, yes, no)",
    "iif": "if(condition, yes, no)",
    "isnull": "value IS NULL, or coalesce(value, other)",
    "isnumeric": "TRY_CAST(text AS DOUBLE) IS NOT NULL",
    "locate": "strpos(text, part)",
    "months_between": "date_diff('month', start, stop)",
    "newid": "uuid()",
    "nvl": "coalesce(value, other)",
    "nvl2": "if(value IS NOT NULL, yes, no)",
    "object_keys": "json_keys(text)",
    "parse_json": "CAST(text AS JSON)",
    "percentile": "quantile_cont(value, 0.95)",
    "percentile_approx": "approx_quantile(value, 0.95)",
    "regexp_like": "regexp_matches(text, pattern)",
    "rlike": "regexp_matches(text, pattern)",
    "size": "len(list)",
    "str_to_date": "strptime(text, '%Y-%m-%d')",
    "substring_index": "split_part(text, separator, 1)",
    "sysdate": "now(), or current_date for the day",
    "sysdatetime": "now()",
    "systimestamp": "now()",
    "time_slice": "time_bucket(INTERVAL 1 DAY, time)",
    "timestampadd": "time + INTERVAL 1 DAY",
    "timestampdiff": "date_diff('day', start, stop)",
    "to_char": "strftime(time, '%Y-%m-%d') for times, or CAST(value AS VARCHAR)",
    "to_date": "CAST(text AS DATE), or strptime(text, '%d.%m.%Y')",
    "to_number": "CAST(text AS DOUBLE)",
    "to_unixtime": "epoch(time)",
    "try_to_date": "TRY_CAST(text AS DATE)",
    "try_to_number": "TRY_CAST(text AS DOUBLE)",
    "unix_timestamp": "epoch(time)",
    "uuid_string": "uuid()",
    "zeroifnull": "coalesce(value, 0)",
}

TYPE_WITH_SCHEMA: Final = "Name a type without a schema."

_FORM_MESSAGES: Final = {
    "SHOW_REF": f"DESCRIBE, SHOW and SUMMARIZE are not allowed. {COLUMNS_HINT}",
    "PARAMETER": "Parameters are not supported. Write the value into the statement.",
    "BASE_TABLE at_clause": "AT (VERSION …) is not supported.",
    "DEFAULT": "DEFAULT has no meaning in a query.",
    "UNBOUND_TYPE_INFO catalog": TYPE_WITH_SCHEMA,
}


class Refusal(Exception):
    """The statement may not run. ``position`` is the offset of the cause in characters, if known."""

    def __init__(self, message: str, *, position: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


def refused_function(name: str, record: dict[str, Any], *, is_table_function: bool = False) -> Refusal:
    kind = "table function" if is_table_function else "function"
    allowed = grammar.ALLOWED_TABLE_FUNCTIONS if is_table_function else grammar.ALLOWED_FUNCTIONS
    reason = grammar.refusal_reason(name, is_table_function=is_table_function)
    if reason:
        message = f'The {kind} "{name}" {reason} and may not be called.'
        if name in _ASKED_BY_TOOLS:
            message += f" {COLUMNS_HINT}"
    else:
        nearest = nearest_name(name, allowed)
        hint = f' Did you mean "{nearest}"?' if nearest else ""
        if name in _INSTEAD:
            hint = f" Write {_INSTEAD[name]}."
        message = f'There is no {kind} "{name}" that a query may call.{hint}'
    if is_table_function:
        message += f" Allowed: {', '.join(sorted(allowed))}."
    return Refusal(message, position=record.get("query_location"))


def refused_form(form: str, record: dict[str, Any]) -> Refusal:
    message = _FORM_MESSAGES.get(form, f"The statement uses a form of SQL that is not allowed here ({form}).")
    return Refusal(message, position=record.get("query_location"))


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, sorted(known), cutoff=0.7)), None)


#: Folders of the service and of DuckDB. Any other path comes from the statement or the log, and is kept.
#: `Path.expanduser` fails for a user without an entry in /etc/passwd, such as OpenShift's.
_ROOTS: Final = (str(Path(__file__).parents[2]), sys.prefix, os.path.expanduser("~"))  # noqa: PTH111

#: Sentences that DuckDB adds after its message: advice for operators on settings, and an echo of the
#: statement. If the message quotes text that looks the same, a closing quote follows, so it does not match.
_ADVICE: Final = (
    re.compile(r"""\s+Use "?SET [a-z_]+(?: TO |=)\S+ to [^'"]*$"""),
    re.compile(r"\n\* SET [a-z_]+=\S+ to [^.'\"]*\.(?=$|\n)"),
    re.compile(r"\n+Possible solutions:\n.*", re.DOTALL),
    re.compile(r"\n+LINE \d+: .*\n *\^\s*$", re.DOTALL),
)

#: What authors of queries take `day` and the times for.
_HINTS: Final = (
    (
        re.compile(
            r"values of type (VARCHAR and (type )?(DATE|TIMESTAMP)|(DATE|TIMESTAMP\b.*) and (type )?VARCHAR)"
        ),
        "`day` is text: compare it with '2026-03-01' or strftime(current_date - 7, '%Y-%m-%d').",
    ),
    (
        re.compile(
            r"values of type (BIGINT and (type )?(DATE|TIMESTAMP)|(DATE|TIMESTAMP\b.*) and (type )?BIGINT)"
        ),
        "`timestamp` and `cacheExpiresAt` are epoch milliseconds: to_timestamp(timestamp / 1000) is a time.",
    ),
)

_CANDIDATES: Final = re.compile(r"\nCandidate bindings: .*", re.DOTALL)

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

_MAX_CANDIDATES: Final = 5

#: DuckDB takes names for alike that share a few letters.
_SIMILARITY: Final = 0.7


def rank_candidates(message: str, details: Mapping[str, Any]) -> str:
    """Name the columns that share words or most letters with an unknown one in place of DuckDB's choice."""
    if "candidates" not in details:
        return message
    name, given = str(details.get("name")), str(details["candidates"]).split(",")
    words = {word.lower() for word in _WORD.findall(name)}
    ranks = {}
    for known in dict.fromkeys([*given, *(() if BY_NAME.keys().isdisjoint(given) else BY_NAME)]):
        unit = (BY_NAME[known].unit or "") if known in BY_NAME else ""
        # Nobody means a moment by milliseconds.
        own = " ".join(["", *_WORD.findall(known), unit]).lower().removesuffix("epoch ms")
        shared = sum(f" {word}" in own for word in words)
        ratio = difflib.SequenceMatcher(None, name.lower(), known.lower()).ratio()
        if shared or ratio >= _SIMILARITY:
            ranks[known] = (ratio >= _SIMILARITY, shared, ratio)
    alike = ", ".join(
        f'"{name}"' for name in sorted(ranks, key=ranks.__getitem__, reverse=True)[:_MAX_CANDIDATES]
    )
    return _CANDIDATES.sub(lambda _: f"\nCandidate bindings: {alike}" if alike else "", message)


def add_hint(message: str) -> str:
    """Add a sentence on the types of the log's columns, if the statement compared other types with them."""
    hint = next((text for pattern, text in _HINTS if pattern.search(message)), None)
    return message if hint is None else f"{message.rstrip('.')}. {hint}"


def clean_message(message: str, *, roots: Iterable[str] = _ROOTS) -> str:
    """Remove paths below ``roots``, and advice on settings, from a message of DuckDB."""
    for advice in _ADVICE:
        message = advice.sub("", message)
    for root in sorted(roots, key=len, reverse=True):
        if root.startswith("/") and root != "/":
            message = re.sub(rf"(?<![\w/.-]){re.escape(root)}(?:/[^\s'\"/,;:()]+)+", "…", message)
    return message.strip()


def character_offset(text: bytes, offset: int | None) -> int | None:
    """Convert an offset in bytes of UTF-8 to one in characters. Return None if it is outside of the text."""
    if offset is None or not 0 <= offset <= len(text):
        return None
    return len(text[:offset].decode(errors="ignore"))


def with_position(message: str, statement: str, position: int | None) -> str:
    """Add the line and column of a character offset to a message, both counted from 1."""
    if position is None:
        return message
    before = statement[:position]
    line = before.count("\n") + 1
    column = position - (before.rfind("\n") + 1) + 1
    return f"{message} (line {line}, column {column})"


_FIRST_WORD: Final = re.compile(rb"[A-Za-z_]+")

#: The characters of an operator, up to a comment.
_OPERATOR: Final = re.compile(rb"(?:(?!--|/\*)[~!@#^&|`?+*/%<>=-])+")

#: Characters that DuckDB's parser reads as a space, but its lexer as a letter.
_UNICODE_SPACE: Final = re.compile("[\u00a0\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff]")

_SEND_ONE_SELECT: Final = "Send one SELECT, or WITH … SELECT, over proxy_logs."

_SEND_SELECT_ALONE: Final = "Send the SELECT alone."

_USE_ACCEPT: Final = (
    f"{_SEND_SELECT_ALONE} The header Accept chooses CSV, NDJSON, Parquet or Arrow for its result."
)

_USE_VALUES: Final = f"{_SEND_SELECT_ALONE} Write its values into it."

_SETTINGS_ARE_FIXED: Final = f"Settings are fixed. {_SEND_ONE_SELECT}"

_VERB_HINTS: Final = {
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
    return f"{verb} is not allowed. {_VERB_HINTS.get(verb, _SEND_ONE_SELECT)}"


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
    match = _FIRST_WORD.match(text, start)
    return match[0].decode().upper() if match else None


def _tokens(text: bytes) -> Iterator[tuple[int, bool]]:
    """Yield the offset of each token, and whether it may be a word. Stop at what the lexer cannot read."""
    # Query processes have it loaded. The service's own processes import the guard but need no DuckDB for it.
    import _duckdb  # noqa: PLC0415

    word_kinds = {_duckdb.token_type.keyword, _duckdb.token_type.identifier}
    with_ascii_spaces = _UNICODE_SPACE.sub(lambda space: " " * len(space[0].encode()), text.decode())
    for start, kind in _duckdb.tokenize(with_ascii_spaces):
        yield start, kind in word_kinds
