"""``unknown-value``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rules.conditions.keys import Operator
from rules.json_text import is_array, show_text
from rules.lint.finding import Severity
from rules.lint.nodes import Operation
from rules.lint.registry import Context, Problem, declare
from rules.lint.spelling import ask_nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rules.json_text import Path

UNKNOWN_VALUE = declare(
    "unknown-value",
    Severity.WARNING,
    "`statementType`, `operationType`, `adapterType` or `cacheOverride` is compared with a text that the log "
    "never has there. Case counts.",
)
_OPERATORS: Final = frozenset({Operator.EQ, Operator.NE, Operator.IN, Operator.NOT_IN})
_PIECES: Final = {
    Operator.CONTAINS: str.__contains__,
    Operator.STARTS_WITH: str.startswith,
    Operator.ENDS_WITH: str.endswith,
}
_VERBS: Final = {
    Operator.CONTAINS: "contains",
    Operator.STARTS_WITH: "starts with",
    Operator.ENDS_WITH: "ends with",
}
_STATEMENTS: Final = """
    ALTER ANALYZE BEGIN CALL CLUSTER COMMENT COMMIT COPY CREATE DEALLOCATE DECLARE DELETE DESC DESCRIBE DROP
    EXECUTE EXPLAIN FETCH FROM GET GRANT INSERT LIST LOAD LOCK MERGE MSCK OPTIMIZE PREPARE PUT REFRESH REMOVE
    RENAME REPLACE RESET REVOKE ROLLBACK SELECT SET SHOW START TABLE TRUNCATE UNDROP UNSET UPDATE UPSERT USE
    VACUUM VALUES WITH
"""
_OPERATIONS: Final = """
    CANCEL_OPERATION CLOSE_OPERATION CLOSE_SESSION EXECUTE_STATEMENT FETCH_RESULTS GET_CATALOGS GET_COLUMNS
    GET_FUNCTIONS GET_INFO GET_OPERATION_STATUS GET_PRIMARY_KEYS GET_RESULT_SET_METADATA GET_SCHEMAS
    GET_TABLES GET_TABLE_TYPES GET_TYPE_INFO OPEN_SESSION TELEMETRY
"""
_VALUES: Final = {
    "adapterType": ("databricks", "snowflake", "postgresql"),
    "cacheOverride": ("cache", "nocache"),
    "statementType": tuple(_STATEMENTS.split()),
    "operationType": tuple(_OPERATIONS.split()),
}
#: Gateways write other names of statements and operations too, but all in capitals.
_CAPITALS: Final = {
    "statementType": re.compile(r"[A-Z][A-Z0-9_ ]*", re.ASCII),
    "operationType": re.compile(r"[A-Z][A-Z0-9_]*", re.ASCII),
}
#: How similar a name in capitals is to a known one if it is taken for a misspelling.
_MISSPELT: Final = 0.8


@UNKNOWN_VALUE.check(Operation, names=_VALUES)
def check_operation(node: Operation, context: Context) -> Iterator[Problem]:
    """Warn about values that match no statement, such as ``"statementType": "select"``."""
    if node.operator in _PIECES:
        yield from _check_piece(node)
    elif node.operator not in _OPERATORS:
        return
    elif node.operator in {Operator.IN, Operator.NOT_IN}:
        for index, element in enumerate(node.operand if is_array(node.operand) else ()):
            yield from _check_value(node, element, (*node.path, index), context)
    else:
        yield from _check_value(node, node.operand, node.path, context)


def _check_value(node: Operation, value: object, path: Path, context: Context) -> Iterator[Problem]:
    if not isinstance(value, str):
        return
    known, capitals = _VALUES[node.key.name], _CAPITALS.get(node.key.name)
    if node.ignore_case:
        if value.lower() in {name.lower() for name in known}:
            return
        value = value if capitals is None else value.upper()
    if value in known:
        return
    similarity = _MISSPELT if capitals is not None and capitals.fullmatch(value) else None
    nearest = context.suggester.find_nearest(value, known, similarity=similarity)
    if similarity is None or nearest is not None:
        message = f"The log never has {show_text(value)} in {node.key.name}{ask_nearest(nearest)}"
        yield Problem(path, message, nearest)


def _check_piece(node: Operation) -> Iterator[Problem]:
    piece, capitals = node.operand, _CAPITALS.get(node.key.name)
    if not isinstance(piece, str) or not piece:
        return
    written = piece
    if capitals is not None:
        # A value may begin with anything before the piece.
        is_known = capitals.fullmatch("A" + (piece.upper() if node.ignore_case else piece)) is not None
    else:
        piece = piece.lower() if node.ignore_case else piece
        is_known = any(_PIECES[node.operator](name, piece) for name in _VALUES[node.key.name])
    if not is_known:
        yield Problem(
            node.path, f"No {node.key.name} of the log {_VERBS[node.operator]} {show_text(written)}."
        )
