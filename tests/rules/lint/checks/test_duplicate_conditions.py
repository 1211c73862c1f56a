"""``duplicate-conditions``: two rules for the same statements."""

from __future__ import annotations

from tests.rules.lint.helpers import cache_rule, find_one, find_places, rule_with

CODE = "duplicate-conditions"


def test_equal_conditions_are_reported() -> None:
    finding = find_one(
        CODE, cache_rule("a", conditions={"host": "h"}), cache_rule("b", conditions={"host": "h"})
    )
    assert finding.path == ("rules", 1, "conditions")
    assert finding.message == "The rule a has conditions with the same meaning."


def test_conditions_with_the_same_meaning_are_reported() -> None:
    first = {"userName": {"in": ["b", "a"]}, "isDDL": False}
    second = {"all": [{"isDDL": {"eq": False}}, {"any": [{"userName": "a"}, {"userName": "b"}]}]}
    assert find_places(CODE, rule_with(first), rule_with(second)) == ["/rules/1/conditions"]


def test_the_message_names_a_rule_without_an_id_by_its_number() -> None:
    finding = find_one(CODE, cache_rule("a"), {"conditions": {"host": "h"}}, rule_with({"host": "h"}))
    assert finding.message == "The rule number 2 in the list has conditions with the same meaning."


def test_ignored_rules_do_not_hide_duplicates() -> None:
    never, disabled = rule_with({"any": []}), rule_with({"host": "h"}, enabled=False)
    rules = (never, disabled, rule_with({"host": "h"}), rule_with({"host": "h"}))
    assert find_places(CODE, *rules) == ["/rules/3/conditions"]


def test_disabled_rules_are_ignored() -> None:
    assert find_places(CODE, rule_with({"host": "h"}, enabled=False), rule_with({"host": "h"})) == []


def test_different_conditions_are_not_reported() -> None:
    assert find_places(CODE, rule_with({"host": "h"}), rule_with({"host": "H"})) == []
