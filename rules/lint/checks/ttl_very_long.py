"""``ttl-very-long``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import RuleNode
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

TTL_VERY_LONG = declare(
    "ttl-very-long", Severity.WARNING, "A cache rule keeps results for more than 30 days."
)
_DAY_SECONDS: Final = 86_400
_LONG_SECONDS: Final = 30 * _DAY_SECONDS


@TTL_VERY_LONG.check(RuleNode)
def check_rule(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Warn about a long TTL: results may become stale unnoticed."""
    ttl = node.ttl_seconds
    if node.action is Action.CACHE and ttl is not None and ttl > _LONG_SECONDS:
        yield Problem(
            (*node.path, "ttlSeconds"),
            f"Results may be served for {ttl // _DAY_SECONDS} days, although the data may have changed.",
        )
