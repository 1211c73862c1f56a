"""``swr-not-cacheable``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import RuleNode
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

SWR_NOT_CACHEABLE = declare(
    "swr-not-cacheable",
    Severity.ERROR,
    "A rule with `staleWhileRevalidate` has another action than `cache`.",
)


@SWR_NOT_CACHEABLE.check(RuleNode, names=["staleWhileRevalidate"])
def check_rule(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Allow ``staleWhileRevalidate`` only on cache rules."""
    if "staleWhileRevalidate" in node.fields and node.action not in {Action.CACHE, None}:
        yield Problem(
            (*node.path, "staleWhileRevalidate"),
            f"A rule with the action {node.action} has no cached results: remove staleWhileRevalidate.",
        )
