"""``conditions-too-deep``: nesting is limited."""

from __future__ import annotations

from tests.rules.lint.helpers import find_places, nest, rule_with

CODE = "conditions-too-deep"


def test_eight_levels_are_allowed() -> None:
    assert find_places(CODE, rule_with(nest(8))) == []


def test_the_ninth_level_is_reported() -> None:
    assert find_places(CODE, rule_with(nest(9))) == ["/rules/0/conditions" + "/not" * 9]


def test_very_deep_nesting_is_reported_once() -> None:
    assert find_places(CODE, rule_with(nest(100_000))) == ["/rules/0/conditions" + "/not" * 9]


def test_all_and_any_count_as_levels() -> None:
    conditions = {"all": [{"any": [nest(7)]}]}
    assert find_places(CODE, rule_with(conditions)) == ["/rules/0/conditions/all/0/any/0" + "/not" * 7]
