"""``require-invalidation-without-targets``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.lint.finding import Severity
from rules.lint.nodes import RuleNode
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUIRE_INVALIDATION_WITHOUT_TARGETS = declare(
    "require-invalidation-without-targets",
    Severity.ERROR,
    "`requireInvalidation` is true on a rule without `invalidateRules`.",
)


@REQUIRE_INVALIDATION_WITHOUT_TARGETS.check(RuleNode, names=["requireInvalidation"])
def check_rule(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Require targets if invalidation is required."""
    if node.fields.get("requireInvalidation") is True and node.lacks_targets:
        yield Problem(
            (*node.path, "requireInvalidation"),
            "requireInvalidation needs at least one cache rule in invalidateRules.",
        )
