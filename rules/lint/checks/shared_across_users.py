"""``shared-across-users``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.json_text import is_object
from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import RuleNode
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED_ACROSS_USERS = declare(
    "shared-across-users",
    Severity.WARNING,
    "A cache rule does not say in `varyBy` what its results depend on, so all users share them.",
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
