"""``invalidate-target-not-cache``: targets must be cache rules."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import cache_rule, find_one, find_places

CODE = "invalidate-target-not-cache"


@pytest.mark.parametrize("action", ["bypass", "deny", "invalidate"])
def test_a_target_with_another_action_is_reported(action: str) -> None:
    target = cache_rule("t", action=action)
    finding = find_one(CODE, target, cache_rule("w", invalidateRules=["t"]))
    assert finding.path == ("rules", 1, "invalidateRules", 0)


def test_the_default_action_of_a_target_is_used() -> None:
    rules = (
        cache_rule("a"),
        cache_rule("b", invalidateRules=["a"]),
        cache_rule("c", invalidateRules=["b", "c"]),
    )
    assert find_places(CODE, *rules) == ["/rules/2/invalidateRules/0", "/rules/2/invalidateRules/1"]


def test_targets_that_are_not_texts_are_not_reported() -> None:
    rules = cache_rule("a", action="deny"), cache_rule("b", invalidateRules=[[], {}, None, "a"])
    assert find_places(CODE, *rules) == ["/rules/1/invalidateRules/3"]


def test_a_disabled_cache_rule_is_allowed_as_target() -> None:
    assert find_places(CODE, cache_rule("a", enabled=False), cache_rule("b", invalidateRules=["a"])) == []
