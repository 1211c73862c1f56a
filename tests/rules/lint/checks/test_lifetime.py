"""Warnings about whether results are kept, and how long."""

from __future__ import annotations

from typing import Any

import pytest

from rules.language import CachingDefaults
from rules.lint import lint_ruleset
from tests.rules.lint.helpers import cache_rule, find_places

CACHE_DISABLED = "cache-disabled"


@pytest.mark.parametrize(
    ("rule", "enabled", "count"),
    [
        ({}, False, 1),
        ({}, True, 0),
        ({"enabled": False}, False, 0),
        ({"action": "bypass"}, False, 0),
    ],
)
def test_enabled_cache_rules_are_reported(rule: dict[str, Any], enabled: bool, count: int) -> None:
    document = {"rules": [{"id": "a", "conditions": {"isDDL": False}, **rule}]}
    result = lint_ruleset(document, caching=CachingDefaults(enabled=enabled))
    assert [finding.code for finding in result.warnings].count(CACHE_DISABLED) == count
    assert not result.errors


TTL_VERY_SHORT = "ttl-very-short"


@pytest.mark.parametrize(
    ("ttl", "places"), [(1, ["/rules/0/ttlSeconds"]), (9, ["/rules/0/ttlSeconds"]), (10, [])]
)
def test_a_ttl_below_10_seconds_is_reported(ttl: int, places: list[str]) -> None:
    assert find_places(TTL_VERY_SHORT, cache_rule(ttlSeconds=ttl)) == places


def test_only_cache_rules_have_a_short_ttl() -> None:
    assert find_places(TTL_VERY_SHORT, cache_rule(ttlSeconds=1, action="bypass")) == []


TTL_VERY_LONG = "ttl-very-long"


@pytest.mark.parametrize(
    ("ttl", "places"),
    [(2_592_000, []), (2_592_001, ["/rules/0/ttlSeconds"]), (31_536_000, ["/rules/0/ttlSeconds"])],
)
def test_a_ttl_above_30_days_is_reported(ttl: int, places: list[str]) -> None:
    assert find_places(TTL_VERY_LONG, cache_rule(ttlSeconds=ttl)) == places


def test_only_cache_rules_have_a_long_ttl() -> None:
    assert find_places(TTL_VERY_LONG, cache_rule(ttlSeconds=31_536_000, action="bypass")) == []


DISABLED_INVALIDATOR = "disabled-invalidator"


def test_a_disabled_rule_with_targets_is_reported() -> None:
    assert find_places(
        DISABLED_INVALIDATOR, cache_rule("a"), cache_rule("b", invalidateRules=["a"], enabled=False)
    ) == ["/rules/1/enabled"]


def test_enabled_rules_and_rules_without_targets_are_not_reported() -> None:
    assert (
        find_places(
            DISABLED_INVALIDATOR, cache_rule("a", enabled=False), cache_rule("b", invalidateRules=["a"])
        )
        == []
    )
