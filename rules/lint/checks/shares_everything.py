"""``shares-everything``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rules.conditions.implication import implies, without_presence
from rules.conditions.keys import CONDITION_KEYS, Operator
from rules.conditions.model import Test
from rules.conditions.normal import Literal
from rules.lint.finding import Severity
from rules.lint.nodes import ValidRule
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARES_EVERYTHING = declare(
    "shares-everything",
    Severity.WARNING,
    "A cache rule decides every statement that reads, and all users share its results.",
    hurts=True,
)
#: What is so of every statement that reads.
_READS: Final = frozenset(
    Literal(Test(CONDITION_KEYS[key], Operator.EQ, operand=value))
    for key, value in (("isReadOnly", True), ("isDataChange", False), ("isDDL", False))
)


@SHARES_EVERYTHING.check(ValidRule)
def check_rule(node: ValidRule, _context: Context) -> Iterator[Problem]:
    """Warn about rules that would serve any result of one user to all others."""
    if not node.rule.shares_results:
        return
    wide = without_presence(node.condition)
    if wide is not None and implies(_READS, wide):
        yield Problem(
            node.path,
            "All users share the results of every table, also where the warehouse shows each of them others.",
        )
