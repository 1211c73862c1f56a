"""``vary-not-cacheable``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import RuleNode
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

VARY_NOT_CACHEABLE = declare(
    "vary-not-cacheable", Severity.ERROR, "A rule with `varyBy` has another action than `cache`."
)


@VARY_NOT_CACHEABLE.check(RuleNode, names=["varyBy"])
def check_rule(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Allow ``varyBy`` only on cache rules."""
    if "varyBy" in node.fields and node.action not in {Action.CACHE, None}:
        yield Problem(
            (*node.path, "varyBy"),
            f"A rule with the action {node.action} has no cached results: remove varyBy.",
        )
