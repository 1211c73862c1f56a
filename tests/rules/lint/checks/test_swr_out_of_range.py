"""``swr-out-of-range``: the bounds of the stale window."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import cache_rule, find_places

CODE = "swr-out-of-range"


@pytest.mark.parametrize("seconds", [-1, 604_801, 10**30])
def test_a_window_outside_of_the_bounds_is_reported(seconds: int) -> None:
    assert find_places(CODE, cache_rule(staleWhileRevalidate=seconds)) == ["/rules/0/staleWhileRevalidate"]


@pytest.mark.parametrize("seconds", [0, 604_800])
def test_the_bounds_are_allowed(seconds: int) -> None:
    assert find_places(CODE, cache_rule(staleWhileRevalidate=seconds, ttlSeconds=604_800)) == []
