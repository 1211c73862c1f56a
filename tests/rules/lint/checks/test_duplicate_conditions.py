"""``duplicate-conditions``: two rules for the same statements."""

from __future__ import annotations

from tests.rules.lint.helpers import cache_rule, find_one, find_places, rule_with

CODE = "duplicate-conditions"


def test_the_same_conditions() -> None:
    finding = find_one(
        CODE, cache_rule("a", conditions={"host": "h"}), cache_rule("b", conditions={"host": "h"})
    )
    assert finding.path == ("rules", 1, "conditions")
    assert finding.message == "The rule a has conditions of the same meaning."


def test_the_same_in_other_words() -> None:
    first = {"userName": {"in": ["b", "a"]}, "isDDL": False}
    second = {"all": [{"isDDL": {"eq": False}}, {"any": [{"userName": "a"}, {"userName": "b"}]}]}
    assert find_places(CODE, rule_with(first), rule_with(second)) == ["/rules/1/conditions"]


def test_the_same_as_those_of_a_rule_without_an_id() -> None:
    finding = find_one(CODE, cache_rule("a"), {"conditions": {"host": "h"}}, rule_with({"host": "h"}))
    assert finding.message == "The rule number 2 in the list has conditions of the same meaning."


def test_rules_that_do_not_count_hide_no_others() -> None:
    never, disabled = rule_with({"any": []}), rule_with({"host": "h"}, enabled=False)
    rules = (never, disabled, rule_with({"host": "h"}), rule_with({"host": "h"}))
    assert find_places(CODE, *rules) == ["/rules/3/conditions"]


def test_disabled_rules_do_not_count() -> None:
    assert find_places(CODE, rule_with({"host": "h"}, enabled=False), rule_with({"host": "h"})) == []


def test_other_conditions() -> None:
    assert find_places(CODE, rule_with({"host": "h"}), rule_with({"host": "H"})) == []
