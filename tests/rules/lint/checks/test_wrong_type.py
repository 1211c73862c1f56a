"""``wrong-type``: every place has its JSON type."""

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
def test_a_field_of_a_rule(name: str, value: Any) -> None:
    assert find_places(CODE, cache_rule(**{name: value})) == [f"/rules/0/{name}"]


@pytest.mark.parametrize(
    ("name", "value"), [("tenantId", 1), ("cacheBust", None), ("seq", "0"), ("seq", 0.5), ("modifiedAt", [])]
)
def test_what_is_sent_back_beside_the_rules(name: str, value: Any) -> None:
    assert find_places(CODE, **{name: value}) == [f"/{name}"]


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert find_places(CODE, cache_rule(ttlSeconds=60.0)) == []


@pytest.mark.parametrize("rule", [None, 1, "x", [], True])
def test_a_rule_is_an_object(rule: object) -> None:
    assert find_places(CODE, rule) == ["/rules/0"]


def test_elements_of_invalidate_rules() -> None:
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
def test_conditions(conditions: dict[str, Any], place: str) -> None:
    assert find_places(CODE, rule_with(conditions)) == [f"/rules/0/conditions{place}"]


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"userName": 1}, "eq on userName takes a string, not a number."),
        ({"userName": {"startsWith": None}}, "startsWith on userName takes a string, not null."),
        ({"userName": {"in": "a"}}, "in on userName takes an array of strings, not a string."),
        ({"userName": {"in": ["a", 1]}}, "in on userName takes strings only, not a number."),
        ({"tables": {"containsAll": [None]}}, "containsAll on tables takes strings only, not null."),
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
    assert find_one(CODE, cache_rule(enabled=2.0)).message == "enabled must be a boolean, not a number."


def test_a_null_is_told_how_to_ask_for_null() -> None:
    message = find_one(CODE, rule_with({"userName": None})).message
    assert message == 'eq on userName takes a string, not null. To match null, write {"exists": false}.'


def test_an_array_is_told_how_to_ask_for_several() -> None:
    message = find_one(CODE, rule_with({"tableCount": [1, 2]})).message
    assert message.endswith(
        'takes a number, not an array. To match one of several values, write {"in": [...]}.'
    )
