"""``swr-exceeds-ttl``: the stale window against the TTL."""

from __future__ import annotations

from tests.rules.lint.helpers import cache_rule, find_codes, find_one, find_places

CODE = "swr-exceeds-ttl"


def test_longer_than_the_ttl() -> None:
    finding = find_one(CODE, cache_rule(ttlSeconds=60, staleWhileRevalidate=61))
    assert finding.path == ("rules", 0, "staleWhileRevalidate")
    assert finding.message == "staleWhileRevalidate (61 s) must not be longer than ttlSeconds (60 s)."


def test_longer_than_the_default_ttl() -> None:
    assert find_places(CODE, cache_rule(staleWhileRevalidate=86_401)) == ["/rules/0/staleWhileRevalidate"]


def test_as_long_as_the_ttl() -> None:
    assert find_places(CODE, cache_rule(ttlSeconds=60, staleWhileRevalidate=60)) == []


def test_a_ttl_that_is_wrong_itself_is_not_compared() -> None:
    assert find_codes(cache_rule(ttlSeconds=0, staleWhileRevalidate=60)) == ["out-of-range"]
