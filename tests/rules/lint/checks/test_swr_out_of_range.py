"""``swr-out-of-range``: the stale window has bounds."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import cache_rule, find_places

CODE = "swr-out-of-range"


@pytest.mark.parametrize("seconds", [-1, 604_801, 10**30])
def test_outside(seconds: int) -> None:
    assert find_places(CODE, cache_rule(staleWhileRevalidate=seconds)) == ["/rules/0/staleWhileRevalidate"]


@pytest.mark.parametrize("seconds", [0, 604_800])
def test_the_bounds_are_inside(seconds: int) -> None:
    assert find_places(CODE, cache_rule(staleWhileRevalidate=seconds, ttlSeconds=604_800)) == []
