"""``shared-across-users``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.dialects.words import find_certain_word
from rules.json_text import is_object
from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import RuleNode, ValidRule
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED_ACROSS_USERS = declare(
    "shared-across-users",
    Severity.WARNING,
    "A cache rule does not say in `varyBy` what its results depend on, so all users share them, or selects "
    "statements that depend on who asks.",
)


@SHARED_ACROSS_USERS.check(RuleNode)
def check_rule(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Warn about cache rules without ``varyBy``: row-level security cannot be seen in a statement."""
    if is_object(node.value) and node.action is Action.CACHE and "varyBy" not in node.fields:
        yield Problem(
            (*node.path, "varyBy"),
            "All users share the results of this rule. If the warehouse shows each user other rows or "
            'columns, write "varyBy": ["userName"]; if not, write "varyBy": [].',
        )


@SHARED_ACROSS_USERS.check(ValidRule)
def check_conditions(node: ValidRule, _context: Context) -> Iterator[Problem]:
    """Warn about conditions that select what depends on who asks, whatever ``varyBy`` says of it."""
    if node.rule.shares_results:
        for path, word in node.find_words(find_certain_word):
            yield Problem(
                path,
                f"The result of {word} depends on who asks or on the session, and all users share it: "
                'write "varyBy": ["userName"], or use the action bypass.',
            )
