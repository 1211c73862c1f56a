"""``dangling-invalidate-reference``: targets must exist."""

from __future__ import annotations

from tests.rules.lint.helpers import cache_rule, find_one, find_places

CODE = "dangling-invalidate-reference"


def test_an_unknown_target_is_reported_with_the_most_similar_id() -> None:
    finding = find_one(CODE, cache_rule("daily-sales"), cache_rule("w", invalidateRules=["daily-sale"]))
    assert finding.path == ("rules", 1, "invalidateRules", 0)
    assert finding.rule_id == "w"
    assert finding.suggestion == "daily-sales"
    assert finding.message == 'There is no rule "daily-sale" to invalidate; did you mean daily-sales?'


def test_no_id_is_suggested_if_none_is_similar() -> None:
    finding = find_one(CODE, cache_rule("a", invalidateRules=["zzz"]))
    assert (finding.suggestion, finding.message) == (None, 'There is no rule "zzz" to invalidate.')


def test_a_target_may_be_a_later_rule() -> None:
    assert find_places(CODE, cache_rule("w", invalidateRules=["a"]), cache_rule("a")) == []


def test_every_reference_is_checked() -> None:
    rules = cache_rule("a"), cache_rule("w", invalidateRules=["x", "a", "y"])
    assert find_places(CODE, *rules) == ["/rules/1/invalidateRules/0", "/rules/1/invalidateRules/2"]
