"""``cache-disabled``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import RuleNode
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

CACHE_DISABLED = declare(
    "cache-disabled",
    Severity.WARNING,
    "A cache rule has no effect while the tenant's configuration has `defaults.cacheEnabled` false. Not "
    "checked by validate.",
)


@CACHE_DISABLED.check(RuleNode)
def check_rule(node: RuleNode, context: Context) -> Iterator[Problem]:
    """Warn that the Gateway declines the rule."""
    if not context.caching.enabled and node.enabled and node.action is Action.CACHE:
        yield Problem(
            node.path, "The configuration has defaults.cacheEnabled false, so the Gateway declines this rule."
        )
