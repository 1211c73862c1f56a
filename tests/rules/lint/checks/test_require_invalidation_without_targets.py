"""``require-invalidation-without-targets``: what is required must be something."""

from __future__ import annotations

from tests.rules.lint.helpers import cache_rule, find_places

CODE = "require-invalidation-without-targets"


def test_without_targets() -> None:
    assert find_places(CODE, cache_rule(requireInvalidation=True)) == ["/rules/0/requireInvalidation"]
    assert find_places(CODE, cache_rule(requireInvalidation=True, invalidateRules=[])) == [
        "/rules/0/requireInvalidation"
    ]


def test_with_targets() -> None:
    assert (
        find_places(CODE, cache_rule("a"), cache_rule(requireInvalidation=True, invalidateRules=["a"])) == []
    )


def test_not_required() -> None:
    assert find_places(CODE, cache_rule(requireInvalidation=False)) == []
