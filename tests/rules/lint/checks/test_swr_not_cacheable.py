"""``swr-not-cacheable``: only cache rules can serve stale results."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import cache_rule, find_places

CODE = "swr-not-cacheable"


@pytest.mark.parametrize("action", ["bypass", "deny", "invalidate"])
def test_other_actions_are_reported(action: str) -> None:
    rule = cache_rule(action=action, staleWhileRevalidate=60)
    assert find_places(CODE, rule) == ["/rules/0/staleWhileRevalidate"]


def test_the_default_action_is_used() -> None:
    rules = (
        cache_rule("a", staleWhileRevalidate=60),
        cache_rule("b", invalidateRules=["a"], staleWhileRevalidate=60),
    )
    assert find_places(CODE, *rules) == ["/rules/1/staleWhileRevalidate"]
