"""``swr-exceeds-ttl``: a stale window that is longer than the TTL."""

from __future__ import annotations

from tests.rules.lint.helpers import cache_rule, find_codes, find_one, find_places

CODE = "swr-exceeds-ttl"


def test_a_window_longer_than_the_ttl_is_reported() -> None:
    finding = find_one(CODE, cache_rule(ttlSeconds=60, staleWhileRevalidate=61))
    assert finding.path == ("rules", 0, "staleWhileRevalidate")
    assert finding.message == "staleWhileRevalidate (61 s) must not be longer than ttlSeconds (60 s)."
    assert finding.suggestion == "60"


def test_a_window_longer_than_the_default_ttl_is_reported() -> None:
    assert find_places(CODE, cache_rule(staleWhileRevalidate=86_401)) == ["/rules/0/staleWhileRevalidate"]


def test_a_window_as_long_as_the_ttl_is_allowed() -> None:
    assert find_places(CODE, cache_rule(ttlSeconds=60, staleWhileRevalidate=60)) == []


def test_an_invalid_ttl_is_not_compared() -> None:
    assert find_codes(cache_rule(ttlSeconds=0, staleWhileRevalidate=60)) == ["out-of-range"]
