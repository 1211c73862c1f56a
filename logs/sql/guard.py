"""Decide whether a statement may run: an allow-list walk over the engine's own parse tree.

Contract: "SQL over the log". The text is never matched; the tree of ``json_serialize_sql`` is walked, and
what `GRAMMAR` and the function lists do not name is refused: node types, table references, expression
classes, and fields of any of them. Pure: no Django, no file, no network. Parsing hostile text can hang
or crash the engine, so the service calls this in the child process that is killed when it overruns.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from logs import columns
from logs.sql import forms, functions
from logs.sql.grammar import GRAMMAR, SELECTORS, Plain
from logs.sql.messages import character_offset, clean_message
from logs.sql.names import RELATION, fold

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

#: The longest statement, in bytes of UTF-8. The parser itself hangs on far longer text.
MAX_STATEMENT_BYTES: Final = 64 * 1024

_HOME_SCHEMAS: Final = frozenset({("", ""), ("", "main"), ("memory", "main")})
_BUILT_IN_SCHEMAS: Final = frozenset({("", ""), ("", "main"), ("system", "main")})

#: Names that the binder turns into calls where no column has them. The tree does not tell which column is in
#: reach: a name that the statement gives to any passes, and `logs.sql.child` makes the calls fail.
IMPLICIT_CALLS: Final = frozenset(
    {"current_catalog", "current_role", "current_schema", "current_user", "session_user", "user"}
)

#: All that the engine says where its parser has a hint, which it gives for LIMIT with two numbers.
_NO_HINT: Final = "errhint NOT IMPLEMENTED"

#: What it says of BETWEEN SYMMETRIC, and of a type with values inside another type.
_NO_SYMMETRIC: Final = "Expression type T_List"
_NO_NESTED_VALUES: Final = "Cannot serialize non-constant type parameter"

_SERIALIZE: Final = (
    "SELECT json_serialize_sql($1::VARCHAR, skip_null := true, skip_empty := true, skip_default := true)"
)


class Refused(Exception):
    """The statement may not run. ``position`` is the offset in characters of the cause, where known."""

    def __init__(self, message: str, *, position: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class Connection(Protocol):
    """The part of an engine connection that the guard needs."""

    def execute(self, query: str, parameters: list[str], /) -> Any: ...


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """A statement that passed, with the engine's parse tree of it.

    ``reads_log`` and ``names_day`` serve the hint on a timeout.
    """

    text: str
    tree: dict[str, Any] = field(repr=False, compare=False)
    reads_log: bool
    names_day: bool


@dataclass(frozen=True, slots=True)
class _Visit:
    family: str
    value: Any
    scope: frozenset[str]


@dataclass(slots=True)
class _Found:
    """What the walk gathers on its way."""

    reads_log: bool = False
    names_day: bool = False
    defined: set[str] = field(default_factory=set)
    implicit: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


def check_text(statement: str) -> bytes:
    """Return the statement as UTF-8, refusing what must not reach the parser at all.

    Raises `Refused` for empty or too long text, NUL (the parser would stop reading there) and lone
    surrogates.
    """
    if not statement.strip():
        raise Refused("The statement is empty. Send one SELECT over proxy_logs.")
    if len(statement) > MAX_STATEMENT_BYTES:
        raise Refused(_too_long())
    nul = statement.find("\0")
    if nul >= 0:
        raise Refused("The statement holds a NUL character. Remove it.", position=nul)
    try:
        text = statement.encode()
    except UnicodeEncodeError as error:
        raise Refused(
            "The statement holds a lone surrogate, which is not Unicode text. Remove it.",
            position=error.start,
        ) from None
    if len(text) > MAX_STATEMENT_BYTES:
        raise Refused(_too_long())
    return text


def check(statement: str, connection: Connection) -> CheckedStatement:
    """Check one statement by the engine's own parse tree.

    Raises `Refused` with a message that names the cure, and the position where the tree has one.
    ``connection`` parses and executes nothing of the statement.
    """
    text = check_text(statement)
    backquote = forms.find_backquote(text)
    if backquote is not None:
        raise Refused(
            "Backquotes quote nothing here. Quote a name that needs it with \"…\", and text with '…'.",
            position=character_offset(text, backquote),
        )
    row = connection.execute(_SERIALIZE, [statement]).fetchone()
    try:
        document = json.loads(row[0])
    except RecursionError:
        raise Refused("The statement nests too deeply. Flatten it.") from None
    tree = _single_statement(document, text)
    try:
        found = _walk(tree)
    except Refused as refusal:
        raise Refused(refusal.message, position=character_offset(text, refusal.position)) from None
    return CheckedStatement(statement, tree, reads_log=found.reads_log, names_day=found.names_day)


def _too_long() -> str:
    return f"The statement is longer than {MAX_STATEMENT_BYTES} bytes. Shorten it."


def _single_statement(document: dict[str, Any], text: bytes) -> dict[str, Any]:
    """Return the tree of the one statement. Parse errors, unlike trees, count in characters."""
    if document.get("error"):
        message = str(document.get("error_message", "it cannot be parsed"))
        if message.startswith("Only SELECT statements"):
            raise Refused(forms.describe_statements(text))
        if message == _NO_HINT and forms.find_word(text, "LIMIT"):
            raise Refused("LIMIT a, b is not supported. Write LIMIT b OFFSET a.")
        if message.startswith(_NO_SYMMETRIC) and (found := forms.find_word(text, "SYMMETRIC")):
            raise Refused(
                "BETWEEN SYMMETRIC is not supported. Write BETWEEN least(a, b) AND greatest(a, b).",
                position=character_offset(text, found[0]),
            )
        if message.startswith(_NO_NESTED_VALUES):
            found = forms.find_word(text, "ENUM")
            # Of several, some may stand alone.
            raise Refused(
                _NESTED_ENUM, position=character_offset(text, found[0]) if len(found) == 1 else None
            )
        position = document.get("position")
        raise Refused(
            f"The statement cannot be parsed: {clean_message(message).rstrip('.!')}.",
            position=int(position) if position is not None else None,
        )
    statements = document["statements"]
    if not statements:
        raise Refused("The statement is empty. Send one SELECT over proxy_logs.")
    if len(statements) > 1:
        raise Refused(f"Send one statement, not {len(statements)}.")
    statement: dict[str, Any] = statements[0]
    return statement


def _walk(statement: dict[str, Any]) -> _Found:
    """Visit every record of the tree, depth first and without recursion."""
    found = _Found()
    pending = [_Visit("statement", statement, frozenset())]
    while pending:
        visit = pending.pop()
        if isinstance(visit.value, list):
            pending.extend(_Visit(visit.family, entry, visit.scope) for entry in reversed(visit.value))
        else:
            pending.extend(_enter(visit, found))
    for name, record in found.implicit:
        if name not in found.defined:
            raise _refused_function(name, record, is_table_function=False)
    return found


def _enter(visit: _Visit, found: _Found) -> Generator[_Visit, None, None]:
    """Check one record and yield what it contains, each with the CTE names in its scope."""
    record = visit.value
    if not isinstance(record, dict):
        raise Refused("The statement uses a form of SQL that is not allowed here.")
    variant = str(record[selector]) if (selector := SELECTORS.get(visit.family)) else ""
    fields = GRAMMAR.get((visit.family, variant))
    if fields is None:
        raise _refused_form(variant or visit.family, record)
    scope = visit.scope
    if "cte_map" in record:
        scope = yield from _enter_ctes(record["cte_map"], scope)
    _check_record(visit.family, variant, record, scope, found)
    for name, value in record.items():
        family = fields.get(name)
        if family is None:
            raise _refused_form(f"{variant or visit.family} {name}", record)
        if isinstance(family, Plain):
            continue
        inner = scope
        if variant == "RECURSIVE_CTE_NODE" and name == "right":
            inner = scope | {fold(record["cte_name"]), f"recurring.{fold(record['cte_name'])}"}
        yield _Visit(family, value, inner)


def _enter_ctes(cte_map: dict[str, Any], scope: frozenset[str]) -> Generator[_Visit, None, frozenset[str]]:
    """Yield each CTE with the names before it in scope; return the scope after the last.

    A forward or self reference would leave the statement: the engine would look for a table or a file.
    """
    for entry in cte_map["map"]:
        yield _Visit("cte", entry["value"], scope)
        scope = scope | {fold(entry["key"])}
    return scope


def _check_record(
    family: str, variant: str, record: dict[str, Any], scope: frozenset[str], found: _Found
) -> None:
    found.defined.update(fold(name) for name in _defined_names(record))
    if family == "table" and variant == "BASE_TABLE":
        _check_table(record, scope, found)
    elif variant == "TABLE_FUNCTION" and family == "table":
        _check_table_function(record)
    elif family == "expression" and variant in {"FUNCTION", "WINDOW"}:
        name = fold(record["function_name"])
        if name not in functions.ALLOWED_FUNCTIONS:
            raise _refused_function(name, record, is_table_function=False)
    elif family == "expression" and variant == "COLUMN_REF":
        path = [fold(part) for part in record["column_names"]]
        found.names_day = found.names_day or path[-1] == columns.DAY
        if len(path) == 1 and path[0] in IMPLICIT_CALLS:
            found.implicit.append((path[0], record))
    elif family == "type info" and variant == "UNBOUND_TYPE_INFO" and record.get("schema", "main") != "main":
        raise Refused(_BARE_TYPE)


def _defined_names(record: dict[str, Any]) -> Iterator[str]:
    """Yield the names that a record gives to columns."""
    alias = record.get("alias")
    if isinstance(alias, str):
        yield alias
    for key in ("column_name_alias", "aliases", "unpivot_names"):
        yield from record.get(key, ())
    for renamed in record.get("rename_list", ()):
        yield renamed["value"]


def _check_table(record: dict[str, Any], scope: frozenset[str], found: _Found) -> None:
    name = fold(record["table_name"])
    catalog, schema = fold(record.get("catalog_name", "")), fold(record.get("schema_name", ""))
    if not catalog and not schema and name in scope:
        return
    if not catalog and schema == "recurring" and f"recurring.{name}" in scope:
        return
    if name == RELATION and (catalog, schema) in _HOME_SCHEMAS:
        found.reads_log = True
        return
    shown = ".".join(part for part in (catalog, schema, record["table_name"]) if part)
    nearest = _nearest(name, {RELATION, *(known for known in scope if "." not in known)})
    hint = f' Did you mean "{nearest}"?' if nearest else ""
    raise Refused(
        f'There is no table "{shown}" here: a query reads proxy_logs, its own subqueries and WITH names'
        f" defined before their use.{hint}",
        position=record.get("query_location"),
    )


def _check_table_function(record: dict[str, Any]) -> None:
    call = record["function"]
    if call.get("class") != "FUNCTION":
        raise _refused_form("TABLE_FUNCTION", record)
    name = fold(call["function_name"])
    home = (fold(call.get("catalog", "")), fold(call.get("schema", "")))
    if name not in functions.ALLOWED_TABLE_FUNCTIONS:
        raise _refused_function(name, call, is_table_function=True)
    if home not in _BUILT_IN_SCHEMAS:
        raise Refused(
            f'Call the table function "{name}" without a schema.', position=call.get("query_location")
        )


def _refused_function(name: str, record: dict[str, Any], *, is_table_function: bool) -> Refused:
    kind = "table function" if is_table_function else "function"
    known = functions.ALLOWED_TABLE_FUNCTIONS if is_table_function else functions.ALLOWED_FUNCTIONS
    reason = functions.refusal_reason(name, is_table_function=is_table_function)
    if reason:
        message = f'The {kind} "{name}" {reason} and may not be called.'
    else:
        nearest = _nearest(name, known)
        hint = f' Did you mean "{nearest}"?' if nearest else ""
        message = f'There is no {kind} "{name}" that a query may call.{hint}'
    if is_table_function:
        message += f" Allowed: {', '.join(sorted(known))}."
    return Refused(message, position=record.get("query_location"))


_NESTED_ENUM: Final = (
    "A type with values, such as ENUM('a', 'b'), is not supported inside another type. Cast the values alone:"
    " list_transform(x, lambda v: v::ENUM('a', 'b')) or struct_pack(k := x.k::ENUM('a', 'b'));"
    " or use VARCHAR."
)

_BARE_TYPE: Final = "Name a type without a schema."

_FORMS: Final = {
    "SHOW_REF": "DESCRIBE, SHOW and SUMMARIZE are not allowed. The columns are listed in the documentation.",
    "PARAMETER": "Parameters are not supported. Write the value into the statement.",
    "BASE_TABLE at_clause": "AT (VERSION …) is not supported.",
    "DEFAULT": "DEFAULT has no meaning in a query.",
    "UNBOUND_TYPE_INFO catalog": _BARE_TYPE,
}


def _refused_form(form: str, record: dict[str, Any]) -> Refused:
    message = _FORMS.get(form, f"The statement uses a form of SQL that is not allowed here ({form}).")
    return Refused(message, position=record.get("query_location"))


def _nearest(name: str, known: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.7)), None)
