"""``duplicate-rule-id``: ids are unique."""

from __future__ import annotations

from tests.rules.lint.helpers import cache_rule, find_one, find_places

CODE = "duplicate-rule-id"


def test_the_later_rule_is_reported() -> None:
    finding = find_one(CODE, cache_rule("a"), cache_rule("b"), cache_rule("a"))
    assert finding.path == ("rules", 2, "id")
    assert finding.message == "Rule 1 in the list already has the id a."


def test_every_later_rule_is_reported() -> None:
    assert find_places(CODE, *[cache_rule("a")] * 3) == ["/rules/1/id", "/rules/2/id"]


def test_ids_that_differ_in_case_are_different() -> None:
    assert find_places(CODE, cache_rule("a"), cache_rule("A")) == []
