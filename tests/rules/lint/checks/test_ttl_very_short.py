"""``ttl-very-short``: cache rules with a short TTL."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import cache_rule, find_places

CODE = "ttl-very-short"


@pytest.mark.parametrize(
    ("ttl", "places"), [(1, ["/rules/0/ttlSeconds"]), (9, ["/rules/0/ttlSeconds"]), (10, [])]
)
def test_a_ttl_below_10_seconds_is_reported(ttl: int, places: list[str]) -> None:
    assert find_places(CODE, cache_rule(ttlSeconds=ttl)) == places


def test_only_cache_rules_are_reported() -> None:
    assert find_places(CODE, cache_rule(ttlSeconds=1, action="bypass")) == []
