"""``invalidate-target-not-cache``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import Ruleset
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

INVALIDATE_TARGET_NOT_CACHE = declare(
    "invalidate-target-not-cache",
    Severity.ERROR,
    "An element of `invalidateRules` is a rule that caches nothing.",
)


@INVALIDATE_TARGET_NOT_CACHE.check(Ruleset)
def check_ruleset(node: Ruleset, _context: Context) -> Iterator[Problem]:
    """Only what is cached can become stale."""
    for rule in node.rules:
        for index, target in enumerate(rule.targets):
            found = node.by_id.get(target) if isinstance(target, str) else None
            if found is not None and found.action not in {Action.CACHE, None}:
                yield Problem(
                    (*rule.path, "invalidateRules", index),
                    f"The rule {target} has the action {found.action}; only a cache rule has results.",
                )
