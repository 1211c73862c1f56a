"""``conditions-too-deep``: nesting has a limit."""

from __future__ import annotations

from tests.rules.lint.helpers import find_places, nest, rule_with

CODE = "conditions-too-deep"


def test_eight_levels_are_allowed() -> None:
    assert find_places(CODE, rule_with(nest(8))) == []


def test_the_ninth_is_named() -> None:
    assert find_places(CODE, rule_with(nest(9))) == ["/rules/0/conditions" + "/not" * 9]


def test_a_depth_bomb_is_found_once() -> None:
    assert find_places(CODE, rule_with(nest(100_000))) == ["/rules/0/conditions" + "/not" * 9]


def test_depth_counts_through_all_and_any() -> None:
    conditions = {"all": [{"any": [nest(7)]}]}
    assert find_places(CODE, rule_with(conditions)) == ["/rules/0/conditions/all/0/any/0" + "/not" * 7]
