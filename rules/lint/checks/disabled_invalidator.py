"""``disabled-invalidator``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.lint.finding import Severity
from rules.lint.nodes import RuleNode
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

DISABLED_INVALIDATOR = declare(
    "disabled-invalidator",
    Severity.WARNING,
    "A disabled rule has `invalidateRules`: stale results of these rules stay in the cache.",
)


@DISABLED_INVALIDATOR.check(RuleNode, names=["enabled"])
def check_rule(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Warn that a disabled rule does not invalidate."""
    if not node.enabled and node.targets:
        yield Problem(
            (*node.path, "enabled"),
            "While this rule is disabled, statements that it matches leave stale results in the cache.",
        )
