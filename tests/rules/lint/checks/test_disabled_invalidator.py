"""``disabled-invalidator``: invalidators that are switched off."""

from __future__ import annotations

from tests.rules.lint.helpers import cache_rule, find_places

CODE = "disabled-invalidator"


def test_disabled_with_targets() -> None:
    assert find_places(CODE, cache_rule("a"), cache_rule("b", invalidateRules=["a"], enabled=False)) == [
        "/rules/1/enabled"
    ]


def test_enabled_or_without_targets() -> None:
    assert find_places(CODE, cache_rule("a", enabled=False), cache_rule("b", invalidateRules=["a"])) == []
