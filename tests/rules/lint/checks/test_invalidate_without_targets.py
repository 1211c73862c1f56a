"""``invalidate-without-targets``: a rule that invalidates needs targets."""

from __future__ import annotations

from tests.rules.lint.helpers import cache_rule, find_places

CODE = "invalidate-without-targets"


def test_the_given_action_needs_targets() -> None:
    assert find_places(CODE, cache_rule(action="invalidate")) == ["/rules/0/invalidateRules"]
    assert find_places(CODE, cache_rule(action="invalidate", invalidateRules=[])) == [
        "/rules/0/invalidateRules"
    ]


def test_the_default_action_needs_targets() -> None:
    assert find_places(CODE, cache_rule(invalidateRules=[])) == ["/rules/0/invalidateRules"]


def test_other_actions_need_no_targets() -> None:
    assert find_places(CODE, cache_rule(action="cache", invalidateRules=[])) == []


def test_targets_of_a_wrong_type_are_not_reported_as_missing() -> None:
    assert find_places(CODE, cache_rule(action="invalidate", invalidateRules="a")) == []
