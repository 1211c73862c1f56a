"""``unknown-operator``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rules.conditions.keys import IGNORE_CASE, OPERATOR_ALIASES, Operator, find_operator
from rules.json_text import show_text
from rules.lint.finding import Severity
from rules.lint.nodes import Operators
from rules.lint.registry import Context, Problem, declare
from rules.lint.spelling import ask_nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

UNKNOWN_OPERATOR = declare(
    "unknown-operator", Severity.ERROR, "A condition key has an operator that does not exist."
)
_KNOWN: Final = (*(operator.value for operator in Operator), IGNORE_CASE)


@UNKNOWN_OPERATOR.check(Operators)
def check_operators(node: Operators, context: Context) -> Iterator[Problem]:
    """Allow only operators and ``ignoreCase``."""
    for name in node.value:
        if name == IGNORE_CASE or find_operator(name) is not None:
            continue
        alias = OPERATOR_ALIASES.get(name.lower())
        nearest = alias.value if alias is not None else context.suggester.find_nearest(name, _KNOWN)
        hint = ask_nearest(nearest, otherwise=f"; the operators are {', '.join(_KNOWN)}.")
        yield Problem((*node.path, name), f"There is no operator {show_text(name)}{hint}", nearest)
