"""``invalidate-without-targets``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import RuleNode
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

INVALIDATE_WITHOUT_TARGETS = declare(
    "invalidate-without-targets",
    Severity.ERROR,
    "A rule has the action `invalidate`, given or by default, but no `invalidateRules`.",
)


@INVALIDATE_WITHOUT_TARGETS.check(RuleNode, names=["action", "invalidateRules"])
def check_rule(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Require at least one target."""
    if node.action is Action.INVALIDATE and node.lacks_targets:
        yield Problem(
            (*node.path, "invalidateRules"),
            "A rule with the action invalidate must name at least one cache rule in invalidateRules.",
        )
