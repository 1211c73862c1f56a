"""``ttl-very-long``: results that outlive their truth."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import cache_rule, find_places

CODE = "ttl-very-long"


@pytest.mark.parametrize(
    ("ttl", "places"),
    [(2_592_000, []), (2_592_001, ["/rules/0/ttlSeconds"]), (31_536_000, ["/rules/0/ttlSeconds"])],
)
def test_the_limit(ttl: int, places: list[str]) -> None:
    assert find_places(CODE, cache_rule(ttlSeconds=ttl)) == places


def test_only_what_is_cached_lives() -> None:
    assert find_places(CODE, cache_rule(ttlSeconds=31_536_000, action="bypass")) == []
