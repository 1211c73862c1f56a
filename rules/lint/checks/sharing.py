"""Warnings about results that users share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rules.conditions.implication import implies, without_presence
from rules.conditions.keys import CONDITION_KEYS, Operator
from rules.conditions.model import Test
from rules.conditions.normal import Literal
from rules.dialects.words import find_certain_word
from rules.json_text import is_object
from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import RuleNode, ValidRule
from rules.lint.registry import Context, Problem, declare

SHARED_ACROSS_USERS = declare(
    "shared-across-users",
    Severity.WARNING,
    "A cache rule does not say in `varyBy` what its results depend on, so all users share them, or selects "
    "statements that depend on who asks.",
)


@SHARED_ACROSS_USERS.check(RuleNode)
def check_shared_across_users_of_rule(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Warn about cache rules without ``varyBy``: row-level security cannot be seen in a statement."""
    if is_object(node.value) and node.action is Action.CACHE and "varyBy" not in node.fields:
        yield Problem(
            (*node.path, "varyBy"),
            "All users share the results of this rule. If the warehouse shows each user other rows or "
            'columns, write "varyBy": ["userName"]; if not, write "varyBy": [].',
        )


@SHARED_ACROSS_USERS.check(ValidRule)
def check_shared_across_users_of_conditions(node: ValidRule, _context: Context) -> Iterator[Problem]:
    """Warn about conditions that select what depends on who asks, whatever ``varyBy`` says of it."""
    if node.rule.shares_results:
        for path, word in node.find_words(find_certain_word):
            yield Problem(
                path,
                f"The result of {word} depends on who asks or on the session, and all users share it: "
                'write "varyBy": ["userName"], or use the action bypass.',
            )


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
def check_shares_everything(node: ValidRule, _context: Context) -> Iterator[Problem]:
    """Warn about rules that would serve any result of one user to all others."""
    if not node.rule.shares_results:
        return
    wide = without_presence(node.condition)
    if wide is not None and implies(_READS, wide):
        yield Problem(
            node.path,
            "All users share the results of every table, also where the warehouse shows each of them others.",
        )
