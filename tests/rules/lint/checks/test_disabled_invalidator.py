"""``disabled-invalidator``: disabled rules with targets."""

from __future__ import annotations

from tests.rules.lint.helpers import cache_rule, find_places

CODE = "disabled-invalidator"


def test_a_disabled_rule_with_targets_is_reported() -> None:
    assert find_places(CODE, cache_rule("a"), cache_rule("b", invalidateRules=["a"], enabled=False)) == [
        "/rules/1/enabled"
    ]


def test_enabled_rules_and_rules_without_targets_are_not_reported() -> None:
    assert find_places(CODE, cache_rule("a", enabled=False), cache_rule("b", invalidateRules=["a"])) == []
