"""``ttl-very-short``: results that hardly live."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import cache_rule, find_places

CODE = "ttl-very-short"


@pytest.mark.parametrize(
    ("ttl", "places"), [(1, ["/rules/0/ttlSeconds"]), (9, ["/rules/0/ttlSeconds"]), (10, [])]
)
def test_the_limit(ttl: int, places: list[str]) -> None:
    assert find_places(CODE, cache_rule(ttlSeconds=ttl)) == places


def test_only_what_is_cached_lives() -> None:
    assert find_places(CODE, cache_rule(ttlSeconds=1, action="bypass")) == []
