"""``invalidate-without-targets``: a rule that invalidates names what."""

from __future__ import annotations

from tests.rules.lint.helpers import cache_rule, find_places

CODE = "invalidate-without-targets"


def test_the_action_named() -> None:
    assert find_places(CODE, cache_rule(action="invalidate")) == ["/rules/0/invalidateRules"]
    assert find_places(CODE, cache_rule(action="invalidate", invalidateRules=[])) == [
        "/rules/0/invalidateRules"
    ]


def test_the_action_by_default() -> None:
    assert find_places(CODE, cache_rule(invalidateRules=[])) == ["/rules/0/invalidateRules"]


def test_other_actions_need_none() -> None:
    assert find_places(CODE, cache_rule(action="cache", invalidateRules=[])) == []


def test_a_wrong_type_is_not_called_absent() -> None:
    assert find_places(CODE, cache_rule(action="invalidate", invalidateRules="a")) == []
