"""``invalidate-target-not-cache``: only what is cached can become stale."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import cache_rule, find_one, find_places

CODE = "invalidate-target-not-cache"


@pytest.mark.parametrize("action", ["bypass", "deny", "invalidate"])
def test_targets_that_cache_nothing(action: str) -> None:
    target = cache_rule("t", action=action)
    finding = find_one(CODE, target, cache_rule("w", invalidateRules=["t"]))
    assert finding.path == ("rules", 1, "invalidateRules", 0)


def test_the_default_action_counts() -> None:
    rules = (
        cache_rule("a"),
        cache_rule("b", invalidateRules=["a"]),
        cache_rule("c", invalidateRules=["b", "c"]),
    )
    assert find_places(CODE, *rules) == ["/rules/2/invalidateRules/0", "/rules/2/invalidateRules/1"]


def test_what_is_no_id_is_another_matter() -> None:
    rules = cache_rule("a", action="deny"), cache_rule("b", invalidateRules=[[], {}, None, "a"])
    assert find_places(CODE, *rules) == ["/rules/1/invalidateRules/3"]


def test_a_disabled_cache_rule_may_be_invalidated() -> None:
    assert find_places(CODE, cache_rule("a", enabled=False), cache_rule("b", invalidateRules=["a"])) == []
