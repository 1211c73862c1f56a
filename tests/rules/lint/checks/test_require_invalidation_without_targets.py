"""``require-invalidation-without-targets``: required invalidation needs targets."""

from __future__ import annotations

from tests.rules.lint.helpers import cache_rule, find_places

CODE = "require-invalidation-without-targets"


def test_a_rule_without_targets_is_reported() -> None:
    assert find_places(CODE, cache_rule(requireInvalidation=True)) == ["/rules/0/requireInvalidation"]
    assert find_places(CODE, cache_rule(requireInvalidation=True, invalidateRules=[])) == [
        "/rules/0/requireInvalidation"
    ]


def test_a_rule_with_targets_is_not_reported() -> None:
    assert (
        find_places(CODE, cache_rule("a"), cache_rule(requireInvalidation=True, invalidateRules=["a"])) == []
    )


def test_a_rule_without_require_invalidation_is_not_reported() -> None:
    assert find_places(CODE, cache_rule(requireInvalidation=False)) == []
