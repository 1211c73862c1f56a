"""``operator-type-mismatch``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rules.conditions.keys import IGNORE_CASE, OPERATORS, Kind
from rules.lint.finding import Severity
from rules.lint.nodes import Operation, Operators
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

OPERATOR_TYPE_MISMATCH = declare(
    "operator-type-mismatch",
    Severity.ERROR,
    "An operator does not fit its key: a text operator on a number, or `cidr` on a name.",
)
_KIND_NAMES: Final = {
    Kind.TEXT: "text",
    Kind.NUMBER: "a number",
    Kind.BOOL: "a boolean",
    Kind.TABLES: "a list of table names",
    Kind.IP: "an address",
}


@OPERATOR_TYPE_MISMATCH.check(Operation)
def check_operation(node: Operation, _context: Context) -> Iterator[Problem]:
    """Require operators that fit the kind of the key."""
    if not node.fits:
        fitting = [operator for operator, spec in OPERATORS.items() if node.key.kind in spec.kinds]
        yield Problem(
            node.path,
            f"{node.operator} does not fit {node.key.name}, which is {_KIND_NAMES[node.key.kind]}: "
            f"use {', '.join(fitting)}.",
        )


@OPERATOR_TYPE_MISMATCH.check(Operators)
def check_operators(node: Operators, _context: Context) -> Iterator[Problem]:
    """Allow ``ignoreCase`` only for texts."""
    if IGNORE_CASE in node.value and not node.key.is_textual:
        yield Problem(
            (*node.path, IGNORE_CASE),
            f"{IGNORE_CASE} does not fit {node.key.name}, which is {_KIND_NAMES[node.key.kind]}.",
        )
