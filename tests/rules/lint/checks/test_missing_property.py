"""``missing-property``: required properties."""

from __future__ import annotations

from tests.rules.lint.helpers import cache_rule, find_one, find_places, rule_with

CODE = "missing-property"


def test_a_rule_needs_an_id() -> None:
    finding = find_one(CODE, {"conditions": {"isDDL": True}})
    assert finding.path == ("rules", 0, "id")
    assert finding.message == "A rule must have a string as its id."


def test_a_rule_needs_only_an_id() -> None:
    assert find_places(CODE, {"id": "a"}) == []


def test_an_object_of_operators_needs_an_operator() -> None:
    assert find_places(CODE, rule_with({"userName": {}, "host": {"ignoreCase": True}})) == [
        "/rules/0/conditions/userName",
        "/rules/0/conditions/host",
    ]


def test_one_operator_is_enough() -> None:
    assert find_places(CODE, cache_rule(conditions={"userName": {"exists": True}})) == []
