"""``ttl-very-long``: cache rules with a long TTL."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import cache_rule, find_places

CODE = "ttl-very-long"


@pytest.mark.parametrize(
    ("ttl", "places"),
    [(2_592_000, []), (2_592_001, ["/rules/0/ttlSeconds"]), (31_536_000, ["/rules/0/ttlSeconds"])],
)
def test_a_ttl_above_30_days_is_reported(ttl: int, places: list[str]) -> None:
    assert find_places(CODE, cache_rule(ttlSeconds=ttl)) == places


def test_only_cache_rules_are_reported() -> None:
    assert find_places(CODE, cache_rule(ttlSeconds=31_536_000, action="bypass")) == []
