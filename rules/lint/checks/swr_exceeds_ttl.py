"""``swr-exceeds-ttl``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.lint.finding import Severity
from rules.lint.nodes import RuleNode
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

SWR_EXCEEDS_TTL = declare(
    "swr-exceeds-ttl",
    Severity.ERROR,
    "`staleWhileRevalidate` is longer than `ttlSeconds`, given or by default.",
)


@SWR_EXCEEDS_TTL.check(RuleNode, names=["staleWhileRevalidate"])
def check_rule(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Limit the stale window to the TTL."""
    window, ttl = node.stale_while_revalidate, node.ttl_seconds
    if window is not None and ttl is not None and window > ttl:
        yield Problem(
            (*node.path, "staleWhileRevalidate"),
            f"staleWhileRevalidate ({window} s) must not be longer than ttlSeconds ({ttl} s).",
            str(ttl),
        )
