"""``invalidate-target-not-cache``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import RuleList
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

INVALIDATE_TARGET_NOT_CACHE = declare(
    "invalidate-target-not-cache",
    Severity.ERROR,
    "An element of `invalidateRules` is not a cache rule.",
)


@INVALIDATE_TARGET_NOT_CACHE.check(RuleList)
def check_ruleset(node: RuleList, _context: Context) -> Iterator[Problem]:
    """Require that targets are cache rules: only they have results that can become stale."""
    for rule in node.rules:
        for index, target in enumerate(rule.targets):
            target_rule = node.by_id.get(target) if isinstance(target, str) else None
            if target_rule is not None and target_rule.action not in {Action.CACHE, None}:
                yield Problem(
                    (*rule.path, "invalidateRules", index),
                    f"The rule {target} has the action {target_rule.action}; only cache rules have results.",
                )
