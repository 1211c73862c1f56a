"""``wrong-type``: values of a wrong JSON type."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.lint.helpers import cache_rule, find_one, find_places, rule_with

CODE = "wrong-type"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", 1),
        ("name", None),
        ("description", []),
        ("enabled", "true"),
        ("enabled", 1),
        ("action", False),
        ("action", ["cache"]),
        ("conditions", []),
        ("conditions", None),
        ("ttlSeconds", "60"),
        ("ttlSeconds", True),
        ("ttlSeconds", 1.5),
        ("ttlSeconds", float("nan")),
        ("staleWhileRevalidate", None),
        ("invalidateRules", "a"),
        ("requireInvalidation", 0),
    ],
)
def test_a_field_of_a_rule_with_a_wrong_type_is_reported(name: str, value: Any) -> None:
    assert find_places(CODE, cache_rule(**{name: value})) == [f"/rules/0/{name}"]


@pytest.mark.parametrize(
    ("name", "value"), [("tenantId", 1), ("cacheBust", None), ("seq", "0"), ("seq", 0.5), ("modifiedAt", [])]
)
def test_read_only_properties_of_a_wrong_type_are_reported(name: str, value: Any) -> None:
    assert find_places(CODE, **{name: value}) == [f"/{name}"]


def test_a_whole_number_may_have_a_decimal_point() -> None:
    assert find_places(CODE, cache_rule(ttlSeconds=60.0)) == []


@pytest.mark.parametrize("rule", [None, 1, "x", [], True])
def test_a_rule_that_is_not_an_object_is_reported(rule: object) -> None:
    assert find_places(CODE, rule) == ["/rules/0"]


def test_targets_that_are_not_texts_are_reported() -> None:
    places = find_places(CODE, cache_rule("a"), cache_rule("b", invalidateRules=["a", 1, None]))
    assert places == ["/rules/1/invalidateRules/1", "/rules/1/invalidateRules/2"]


@pytest.mark.parametrize(
    ("conditions", "place"),
    [
        ({"all": {}}, "/all"),
        ({"any": "x"}, "/any"),
        ({"not": []}, "/not"),
        ({"all": [{}, 1]}, "/all/1"),
        ({"userName": None}, "/userName"),
        ({"userName": ["a"]}, "/userName"),
        ({"userName": 1}, "/userName"),
        ({"isDDL": "true"}, "/isDDL"),
        ({"tableCount": "1"}, "/tableCount"),
        ({"tableCount": True}, "/tableCount"),
        ({"userName": {"in": "a"}}, "/userName/in"),
        ({"userName": {"in": ["a", 1]}}, "/userName/in/1"),
        ({"userName": {"exists": "yes"}}, "/userName/exists"),
        ({"userName": {"regex": ["a"]}}, "/userName/regex"),
        ({"tableCount": {"gt": float("inf")}}, "/tableCount/gt"),
        ({"tables": {"containsAny": "a.*"}}, "/tables/containsAny"),
        ({"tables": {"containsAll": [None]}}, "/tables/containsAll/0"),
        ({"clientIp": {"cidr": 10}}, "/clientIp/cidr"),
        ({"clientIp": {"cidr": ["10.0.0.0/8", 1]}}, "/clientIp/cidr/1"),
        ({"userName": {"eq": "a", "ignoreCase": 1}}, "/userName/ignoreCase"),
    ],
)
def test_conditions_of_a_wrong_type_are_reported(conditions: dict[str, Any], place: str) -> None:
    assert find_places(CODE, rule_with(conditions)) == [f"/rules/0/conditions{place}"]


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"userName": 1}, "userName takes a string, not a number."),
        ({"userName": {"eq": 1}}, "eq on userName takes a string, not a number."),
        ({"userName": {"startsWith": None}}, "startsWith on userName takes a string, not null."),
        ({"userName": {"in": "a"}}, "in on userName takes an array of strings, not a string."),
        ({"userName": {"in": ["a", 1]}}, "in on userName takes only strings, not a number."),
        ({"tables": {"containsAll": [None]}}, "containsAll on tables takes only strings, not null."),
    ],
)
def test_the_message_names_both_types(conditions: dict[str, Any], message: str) -> None:
    assert find_one(CODE, rule_with(conditions)).message == message


@pytest.mark.parametrize(
    ("value", "found"),
    [(1.5, "a number with a fraction"), ("60", "a string"), (True, "a boolean"), (None, "null")],
)
def test_the_message_of_a_field_names_both_types(value: object, found: str) -> None:
    assert (
        find_one(CODE, cache_rule(ttlSeconds=value)).message == f"ttlSeconds must be an integer, not {found}."
    )
    assert find_one(CODE, seq=value).message == f"seq must be an integer, not {found}."


def test_a_whole_number_has_no_fraction() -> None:
    assert find_one(CODE, cache_rule(enabled=3.0)).message == "enabled must be a boolean, not a number."


def test_the_message_says_how_to_match_null() -> None:
    message = find_one(CODE, rule_with({"userName": None})).message
    assert message == 'userName takes a string, not null. To match null, write {"exists": false}.'


def test_the_message_says_how_to_match_several_values() -> None:
    message = find_one(CODE, rule_with({"tableCount": [1, 2]})).message
    assert message.endswith(
        'takes a number, not an array. To match one of several values, write {"in": [...]}.'
    )
