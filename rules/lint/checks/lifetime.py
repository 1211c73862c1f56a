"""Warnings about whether results are kept, and how long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import RuleNode
from rules.lint.registry import Context, Problem, declare

CACHE_DISABLED = declare(
    "cache-disabled",
    Severity.WARNING,
    "A cache rule has no effect while the tenant's configuration has `defaults.cacheEnabled` false. Not "
    "checked by validate.",
)


@CACHE_DISABLED.check(RuleNode)
def check_cache_disabled(node: RuleNode, context: Context) -> Iterator[Problem]:
    """Warn that the Gateway declines the rule."""
    if not context.caching.enabled and node.enabled and node.action is Action.CACHE:
        yield Problem(
            node.path, "The configuration has defaults.cacheEnabled false, so the Gateway declines this rule."
        )


TTL_VERY_SHORT = declare(
    "ttl-very-short", Severity.WARNING, "A cache rule keeps results for less than 10 seconds."
)
_SHORT_SECONDS: Final = 10


@TTL_VERY_SHORT.check(RuleNode)
def check_ttl_very_short(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Warn about a short TTL: results are rarely requested again in time."""
    ttl = node.ttl_seconds
    if node.action is Action.CACHE and ttl is not None and ttl < _SHORT_SECONDS:
        yield Problem(
            (*node.path, "ttlSeconds"),
            f"Results that expire after {ttl} s are hardly ever served from the cache.",
        )


TTL_VERY_LONG = declare(
    "ttl-very-long", Severity.WARNING, "A cache rule keeps results for more than 30 days."
)
_DAY_SECONDS: Final = 86_400
_LONG_SECONDS: Final = 30 * _DAY_SECONDS


@TTL_VERY_LONG.check(RuleNode)
def check_ttl_very_long(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Warn about a long TTL: results may become stale unnoticed."""
    ttl = node.ttl_seconds
    if node.action is Action.CACHE and ttl is not None and ttl > _LONG_SECONDS:
        yield Problem(
            (*node.path, "ttlSeconds"),
            f"Results may be served for {ttl // _DAY_SECONDS} days, although the data may have changed.",
        )


DISABLED_INVALIDATOR = declare(
    "disabled-invalidator",
    Severity.WARNING,
    "A disabled rule has `invalidateRules`: stale results of these rules stay in the cache.",
)


@DISABLED_INVALIDATOR.check(RuleNode, names=["enabled"])
def check_disabled_invalidator(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Warn that a disabled rule does not invalidate."""
    if not node.enabled and node.targets:
        yield Problem(
            (*node.path, "enabled"),
            "While this rule is disabled, statements that it matches leave stale results in the cache.",
        )
