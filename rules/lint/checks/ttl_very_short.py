"""``ttl-very-short``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import RuleNode
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

TTL_VERY_SHORT = declare(
    "ttl-very-short", Severity.WARNING, "A cache rule keeps results for less than 10 seconds."
)
_SHORT_SECONDS: Final = 10


@TTL_VERY_SHORT.check(RuleNode)
def check_rule(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Warn about a short TTL: results are rarely requested again in time."""
    ttl = node.ttl_seconds
    if node.action is Action.CACHE and ttl is not None and ttl < _SHORT_SECONDS:
        yield Problem(
            (*node.path, "ttlSeconds"),
            f"Results that expire after {ttl} s are hardly ever served from the cache.",
        )
