"""Decide whether a statement may run, by its parse tree.

Contract: "SQL over the log". DuckDB's ``json_serialize_sql`` gives the tree. Only records, fields and
functions that `GRAMMAR` and the function lists name are allowed. The text is only searched for backquotes.
Parsing a hostile statement can hang or crash DuckDB, so only query processes call `check`. Imports no Django.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from logs import columns
from logs.quoting import quote_text
from logs.sql import grammar, refusals
from logs.sql.grammar import GRAMMAR, SELECTORS, Plain
from logs.sql.refusals import (
    CATALOGS,
    COLUMNS_HINT,
    NESTED_ENUM,
    TYPE_WITH_SCHEMA,
    Refusal,
    character_offset,
    clean_message,
    nearest_name,
    refused_form,
    refused_function,
)
from logs.sql.view import LOG_VIEWS, fold

#: The maximum length of a statement, in bytes of UTF-8. DuckDB's parser hangs on much longer text.
MAX_STATEMENT_BYTES: Final = 64 * 1024

#: Allowed (catalog, schema) of the log view, and of built-in table functions.
_LOG_SCHEMAS: Final = frozenset({("", ""), ("", "main"), ("memory", "main")})
_BUILT_IN_SCHEMAS: Final = frozenset({("", ""), ("", "main"), ("system", "main")})

#: Names that DuckDB takes for function calls if no column in scope has them. The tree does not tell which
#: columns are in scope. So the guard lets such a name pass if the statement gives it to any column, and
#: `logs.sql.child` makes the calls fail.
IMPLICIT_CALLS: Final = frozenset(
    {"current_catalog", "current_role", "current_schema", "current_user", "session_user", "user"}
)

#: DuckDB's messages for LIMIT with two numbers, for BETWEEN SYMMETRIC, and for a type with values (ENUM)
#: inside another type.
_TWO_LIMITS_MESSAGE: Final = "errhint NOT IMPLEMENTED"
_SYMMETRIC_MESSAGE: Final = "Expression type T_List"
_NESTED_ENUM_MESSAGE: Final = "Cannot serialize non-constant type parameter"

#: Empty lists are kept, because ROLLUP has one among its group sets: the group of all rows.
#: The statement is a literal: with a parameter the engine takes 0.2 ms more.
_SERIALIZE: Final = "SELECT json_serialize_sql({}, skip_null := true, skip_default := true)"


class Connection(Protocol):
    """The methods of a DuckDB connection that the guard needs."""

    def execute(self, query: str, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """A statement that may run.

    Attributes:
        tree: its parse tree.
        reads_log: it reads proxy_logs.
        names_day: it contains a column named ``day``. Both are used in the message on a timeout.
        is_repeatable: an answer stays valid while the log does not change, because it does not depend on the
            time or on random numbers. Several answers may be valid, as with LIMIT without an order.
    """

    text: str
    tree: dict[str, Any]
    reads_log: bool
    names_day: bool
    is_repeatable: bool


@dataclass(frozen=True, slots=True)
class _Visit:
    """A record, or a list of records, to visit, with the CTE names in scope."""

    family: str
    value: Any
    scope: frozenset[str]


@dataclass(slots=True)
class _Findings:
    """Names that `_walk` collects.

    Attributes:
        column_names: names that the statement gives to columns.
        implicit_calls: references to columns whose names are in `IMPLICIT_CALLS`, with their records.
    """

    reads_log: bool = False
    names_day: bool = False
    is_repeatable: bool = True
    column_names: set[str] = field(default_factory=set)
    implicit_calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


def check_text(statement: str) -> bytes:
    """Return the statement as UTF-8.

    Raises:
        Refusal: it is empty or too long, or contains a NUL character, at which the parser would stop, or an
            unpaired surrogate.
    """
    if not statement.strip():
        raise Refusal("The statement is empty. Send one SELECT over proxy_logs.")
    nul = statement.find("\0")
    if nul >= 0:
        raise Refusal("The statement contains a NUL character. Remove it.", position=nul)
    try:
        text = statement.encode()
    except UnicodeEncodeError as error:
        raise Refusal(
            "The statement contains an unpaired surrogate. Remove it.",
            position=error.start,
        ) from None
    if len(text) > MAX_STATEMENT_BYTES:
        raise Refusal(f"The statement is longer than {MAX_STATEMENT_BYTES} bytes. Shorten it.")
    return text


def check(statement: str, connection: Connection) -> CheckedStatement:
    """Check one statement by its parse tree. ``connection`` only parses the statement.

    Raises:
        Refusal: the statement may not run. The message says how to correct it.
    """
    text = check_text(statement)
    backquote = refusals.find_backquote(text)
    if backquote is not None:
        raise Refusal(
            "Backquotes are not quotes here. Quote a name that needs it with \"…\", and text with '…'.",
            position=character_offset(text, backquote),
        )
    row = connection.execute(_SERIALIZE.format(quote_text(statement))).fetchone()
    try:
        document = json.loads(row[0])
    except RecursionError:
        raise Refusal("The statement is nested too deeply. Flatten it.") from None
    tree = _single_statement(document, text)
    try:
        findings = _walk(tree)
    except Refusal as refusal:
        # Positions in the tree are offsets in bytes.
        raise Refusal(refusal.message, position=character_offset(text, refusal.position)) from None
    return CheckedStatement(
        statement,
        tree,
        reads_log=findings.reads_log,
        names_day=findings.names_day,
        is_repeatable=findings.is_repeatable,
    )


def _single_statement(document: dict[str, Any], text: bytes) -> dict[str, Any]:
    """Return the tree of the only statement.

    Raises:
        Refusal: the text is not one query, or cannot be parsed.
    """
    if document.get("error"):
        message = str(document.get("error_message", "it cannot be parsed"))
        if message.startswith("Only SELECT statements"):
            raise Refusal(refusals.describe_statements(text))
        if message == _TWO_LIMITS_MESSAGE and refusals.find_word(text, "LIMIT"):
            raise Refusal("LIMIT a, b is not supported. Write LIMIT b OFFSET a.")
        if message.startswith(_SYMMETRIC_MESSAGE) and (offsets := refusals.find_word(text, "SYMMETRIC")):
            raise Refusal(
                "BETWEEN SYMMETRIC is not supported. Write BETWEEN least(a, b) AND greatest(a, b).",
                position=character_offset(text, offsets[0]),
            )
        if message.startswith(_NESTED_ENUM_MESSAGE):
            offsets = refusals.find_word(text, "ENUM")
            # If there are several, it is not known which one is inside another type.
            raise Refusal(
                NESTED_ENUM, position=character_offset(text, offsets[0]) if len(offsets) == 1 else None
            )
        # The position of a parse error is in characters already.
        position = document.get("position")
        raise Refusal(
            f"The statement cannot be parsed: {clean_message(message).rstrip('.!')}.",
            position=int(position) if position is not None else None,
        )
    statements = document["statements"]
    if not statements:
        raise Refusal("The statement is empty. Send one SELECT over proxy_logs.")
    if len(statements) > 1:
        raise Refusal(f"Send one statement, not {len(statements)}.")
    statement: dict[str, Any] = statements[0]
    return statement


def _walk(statement: dict[str, Any]) -> _Findings:
    """Check every record of the tree, depth first and without recursion."""
    findings = _Findings()
    pending = [_Visit("statement", statement, frozenset())]
    while pending:
        visit = pending.pop()
        if isinstance(visit.value, list):
            pending.extend(_Visit(visit.family, entry, visit.scope) for entry in reversed(visit.value))
        else:
            pending.extend(_visit_record(visit, findings))
    for name, record in findings.implicit_calls:
        if name not in findings.column_names:
            raise refused_function(name, record)
    return findings


def _visit_record(visit: _Visit, findings: _Findings) -> Generator[_Visit, None, None]:
    """Check one record, and yield the records in its fields with the CTE names in their scope."""
    record = visit.value
    if not isinstance(record, dict):
        raise Refusal("The statement uses a form of SQL that is not allowed here.")
    variant = str(record[selector]) if (selector := SELECTORS.get(visit.family)) else ""
    fields = GRAMMAR.get((visit.family, variant))
    if fields is None:
        raise refused_form(variant or visit.family, record)
    scope = visit.scope
    if "cte_map" in record:
        scope = yield from _visit_ctes(record["cte_map"], scope)
    _check_record(visit.family, variant, record, scope, findings)
    for name, value in record.items():
        family = fields.get(name)
        if family is None:
            raise refused_form(f"{variant or visit.family} {name}", record)
        if isinstance(family, Plain):
            continue
        field_scope = scope
        if variant == "RECURSIVE_CTE_NODE" and name == "right":
            field_scope = scope | {fold(record["cte_name"]), f"recurring.{fold(record['cte_name'])}"}
        yield _Visit(family, value, field_scope)


def _visit_ctes(cte_map: dict[str, Any], scope: frozenset[str]) -> Generator[_Visit, None, frozenset[str]]:
    """Yield each CTE with the names of the CTEs before it in scope. Return the scope after the last one.

    A CTE's own name and later names are not in scope: DuckDB would look for a table or a file there.
    """
    for entry in cte_map.get("map", ()):
        yield _Visit("cte", entry["value"], scope)
        scope = scope | {fold(entry["key"])}
    return scope


def _check_record(
    family: str, variant: str, record: dict[str, Any], scope: frozenset[str], findings: _Findings
) -> None:
    findings.column_names.update(fold(name) for name in _column_names(record))
    findings.is_repeatable = findings.is_repeatable and not _is_volatile(family, variant, record)
    if family == "table" and variant == "BASE_TABLE":
        _check_table(record, scope, findings)
    elif variant == "TABLE_FUNCTION" and family == "table":
        _check_table_function(record)
    elif family == "expression" and variant in {"FUNCTION", "WINDOW"}:
        name = fold(record["function_name"])
        if name not in grammar.ALLOWED_FUNCTIONS:
            raise refused_function(name, record)
    elif family == "expression" and variant == "COLUMN_REF":
        path = [fold(part) for part in record["column_names"]]
        findings.names_day = findings.names_day or path[-1] == columns.DAY
        if len(path) == 1 and path[0] in IMPLICIT_CALLS:
            findings.implicit_calls.append((path[0], record))
    elif family == "type info" and variant == "UNBOUND_TYPE_INFO" and record.get("schema", "main") != "main":
        raise Refusal(TYPE_WITH_SCHEMA)


def _is_volatile(family: str, variant: str, record: dict[str, Any]) -> bool:
    """Return True if the value of a record depends on the time or on random numbers."""
    if family == "expression" and variant in {"FUNCTION", "WINDOW"}:
        return fold(record["function_name"]) in grammar.VOLATILE
    if family == "expression" and variant == "COLUMN_REF":
        path = record["column_names"]
        return len(path) == 1 and fold(path[0]) in grammar.TIME_KEYWORDS
    if family == "type":
        # Its conversion to another time zone uses the offset of today.
        return bool(record["id"] == "TIME WITH TIME ZONE")
    return family == "sample"


def _column_names(record: dict[str, Any]) -> Iterator[str]:
    """Yield the names that a record gives to columns."""
    alias = record.get("alias")
    if isinstance(alias, str):
        yield alias
    for key in ("column_name_alias", "aliases", "unpivot_names"):
        yield from record.get(key, ())
    for renamed in record.get("rename_list", ()):
        yield renamed["value"]


def _check_table(record: dict[str, Any], scope: frozenset[str], findings: _Findings) -> None:
    name = fold(record["table_name"])
    catalog, schema = fold(record.get("catalog_name", "")), fold(record.get("schema_name", ""))
    if not catalog and not schema and name in scope:
        return
    if not catalog and schema == "recurring" and f"recurring.{name}" in scope:
        return
    if name in LOG_VIEWS and (catalog, schema) in _LOG_SCHEMAS:
        findings.reads_log = True
        return
    if "information_schema" in {catalog, schema} or "pg_catalog" in {catalog, schema} or name in CATALOGS:
        message = f'The catalog table "{name}" is not here: the only table is proxy_logs. {COLUMNS_HINT}'
        raise Refusal(message, position=record.get("query_location"))
    full_name = ".".join(part for part in (catalog, schema, record["table_name"]) if part)
    nearest = nearest_name(name, {*LOG_VIEWS, *(known for known in scope if "." not in known)})
    hint = f' Did you mean "{nearest}"?' if nearest else ""
    raise Refusal(
        f'There is no table "{full_name}" here: a query reads proxy_logs, its own subqueries and WITH names'
        f" defined before their use.{hint}",
        position=record.get("query_location"),
    )


def _check_table_function(record: dict[str, Any]) -> None:
    call = record["function"]
    if call.get("class") != "FUNCTION":
        raise refused_form("TABLE_FUNCTION", record)
    name = fold(call["function_name"])
    schema = (fold(call.get("catalog", "")), fold(call.get("schema", "")))
    if name not in grammar.ALLOWED_TABLE_FUNCTIONS:
        raise refused_function(name, call, is_table_function=True)
    if schema not in _BUILT_IN_SCHEMAS:
        raise Refusal(
            f'Call the table function "{name}" without a schema.', position=call.get("query_location")
        )
