"""The form of a ruleset and its rules: properties, types, ranges and ids."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rules.lint import report_finding
from tests.rules.lint.helpers import cache_rule, find_one, find_places, rule_with

UNKNOWN_PROPERTY = "unknown-property"


def test_an_unknown_property_of_a_rule_is_reported() -> None:
    finding = find_one(UNKNOWN_PROPERTY, cache_rule(tllSeconds=60))
    assert msgspec.to_builtins(report_finding(finding)) == {
        "code": UNKNOWN_PROPERTY,
        "severity": "error",
        "ruleId": "r",
        "path": "/rules/0/tllSeconds",
        "message": 'A rule has no property "tllSeconds"; did you mean ttlSeconds?',
        "suggestion": "ttlSeconds",
    }


def test_an_unknown_property_of_the_ruleset_is_reported() -> None:
    finding = find_one(UNKNOWN_PROPERTY, cacheBusts="x")
    assert finding.path == ("cacheBusts",)
    assert finding.rule_id is None
    assert finding.suggestion == "cacheBust"


def test_read_only_properties_may_be_sent_back() -> None:
    members = {"tenantId": 1, "cacheBust": [], "seq": None, "modifiedAt": {}}
    assert find_places(UNKNOWN_PROPERTY, cache_rule(), **members) == []


def test_no_property_is_suggested_if_none_is_similar() -> None:
    assert find_one(UNKNOWN_PROPERTY, cache_rule(**{"~x/y": 1})).suggestion is None
    assert find_places(UNKNOWN_PROPERTY, cache_rule(**{"~x/y": 1})) == ["/rules/0/~0x~1y"]


MISSING_PROPERTY = "missing-property"


def test_a_rule_needs_an_id() -> None:
    finding = find_one(MISSING_PROPERTY, {"conditions": {"isDDL": True}})
    assert finding.path == ("rules", 0, "id")
    assert finding.message == "A rule must have a string as its id."


def test_a_rule_needs_only_an_id() -> None:
    assert find_places(MISSING_PROPERTY, {"id": "a"}) == []


def test_an_object_of_operators_needs_an_operator() -> None:
    assert find_places(MISSING_PROPERTY, rule_with({"userName": {}, "host": {"ignoreCase": True}})) == [
        "/rules/0/conditions/userName",
        "/rules/0/conditions/host",
    ]


def test_one_operator_is_enough() -> None:
    assert find_places(MISSING_PROPERTY, cache_rule(conditions={"userName": {"exists": True}})) == []


WRONG_TYPE = "wrong-type"


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
    assert find_places(WRONG_TYPE, cache_rule(**{name: value})) == [f"/rules/0/{name}"]


@pytest.mark.parametrize(
    ("name", "value"), [("tenantId", 1), ("cacheBust", None), ("seq", "0"), ("seq", 0.5), ("modifiedAt", [])]
)
def test_read_only_properties_of_a_wrong_type_are_reported(name: str, value: Any) -> None:
    assert find_places(WRONG_TYPE, **{name: value}) == [f"/{name}"]


def test_a_whole_number_may_have_a_decimal_point() -> None:
    assert find_places(WRONG_TYPE, cache_rule(ttlSeconds=60.0)) == []


@pytest.mark.parametrize("rule", [None, 1, "x", [], True])
def test_a_rule_that_is_not_an_object_is_reported(rule: object) -> None:
    assert find_places(WRONG_TYPE, rule) == ["/rules/0"]


def test_targets_that_are_not_texts_are_reported() -> None:
    places = find_places(WRONG_TYPE, cache_rule("a"), cache_rule("b", invalidateRules=["a", 1, None]))
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
    assert find_places(WRONG_TYPE, rule_with(conditions)) == [f"/rules/0/conditions{place}"]


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
    assert find_one(WRONG_TYPE, rule_with(conditions)).message == message


@pytest.mark.parametrize(
    ("value", "found"),
    [(1.5, "a number with a fraction"), ("60", "a string"), (True, "a boolean"), (None, "null")],
)
def test_the_message_of_a_field_names_both_types(value: object, found: str) -> None:
    assert (
        find_one(WRONG_TYPE, cache_rule(ttlSeconds=value)).message
        == f"ttlSeconds must be an integer, not {found}."
    )
    assert find_one(WRONG_TYPE, seq=value).message == f"seq must be an integer, not {found}."


def test_a_whole_number_has_no_fraction() -> None:
    assert find_one(WRONG_TYPE, cache_rule(enabled=3.0)).message == "enabled must be a boolean, not a number."


def test_the_message_says_how_to_match_null() -> None:
    message = find_one(WRONG_TYPE, rule_with({"userName": None})).message
    assert message == 'userName takes a string, not null. To match null, write {"exists": false}.'


def test_the_message_says_how_to_match_several_values() -> None:
    message = find_one(WRONG_TYPE, rule_with({"tableCount": [1, 2]})).message
    assert message.endswith(
        'takes a number, not an array. To match one of several values, write {"in": [...]}.'
    )


OUT_OF_RANGE = "out-of-range"


@pytest.mark.parametrize("ttl", [0, -1, 31_536_001, 10**400])
def test_a_ttl_outside_of_the_bounds_is_reported(ttl: int) -> None:
    assert find_places(OUT_OF_RANGE, cache_rule(ttlSeconds=ttl)) == ["/rules/0/ttlSeconds"]


@pytest.mark.parametrize("ttl", [1, 31_536_000])
def test_the_bounds_are_allowed(ttl: int) -> None:
    assert find_places(OUT_OF_RANGE, cache_rule(ttlSeconds=ttl)) == []


@pytest.mark.parametrize(("name", "value"), [("seq", -1), ("tenantId", "warehouse"), ("tenantId", "")])
def test_invalid_read_only_properties_are_reported(name: str, value: object) -> None:
    assert find_places(OUT_OF_RANGE, **{name: value}) == [f"/{name}"]


@pytest.mark.parametrize(
    ("name", "value"), [("seq", 0), ("tenantId", "0190a5c4-7b1e-7c3a-9d2f-0a1b2c3d4e5f".upper())]
)
def test_valid_read_only_properties_are_allowed(name: str, value: object) -> None:
    assert find_places(OUT_OF_RANGE, **{name: value}) == []


@pytest.mark.parametrize(
    ("action", "nearest", "hint"),
    [
        ("Denny", "deny", "did you mean deny?"),
        ("x", None, "the actions are cache, bypass, deny, invalidate."),
    ],
)
def test_an_unknown_action_is_reported(action: str, nearest: str | None, hint: str) -> None:
    finding = find_one(OUT_OF_RANGE, cache_rule(action=action))
    assert finding.path == ("rules", 0, "action")
    assert finding.suggestion == nearest
    assert finding.message == f'There is no action "{action}"; {hint}'


def test_a_long_pattern_is_reported() -> None:
    assert find_places(OUT_OF_RANGE, rule_with({"userName": {"regex": "a" * 2_000}})) == []
    assert find_places(OUT_OF_RANGE, rule_with({"userName": {"regex": "a" * 2_001}})) == [
        "/rules/0/conditions/userName/regex"
    ]
    assert find_places(OUT_OF_RANGE, rule_with({"tables": {"containsAny": ["a.*", "a" * 2_001]}})) == [
        "/rules/0/conditions/tables/containsAny/1"
    ]
    assert find_places(OUT_OF_RANGE, rule_with({"tables": {"containsAll": ["a" * 2_000, "a" * 2_001]}})) == [
        "/rules/0/conditions/tables/containsAll/1"
    ]


@pytest.mark.parametrize("operator", ["containsAny", "containsAll"])
def test_a_test_has_at_most_a_thousand_patterns(operator: str) -> None:
    names = [f"t{number}" for number in range(1_001)]
    assert find_places(OUT_OF_RANGE, rule_with({"tables": {operator: names[:1_000]}})) == []
    assert find_places(OUT_OF_RANGE, rule_with({"tables": {operator: names}})) == [
        f"/rules/0/conditions/tables/{operator}"
    ]
    # Names that are compared as a whole may be many.
    assert find_places(OUT_OF_RANGE, rule_with({"tables": {"in": names}})) == []


def test_a_number_that_is_not_exact_in_json_is_reported() -> None:
    assert find_places(OUT_OF_RANGE, rule_with({"tableCount": {"in": [2**53, 2**53 + 1, -(10**400)]}})) == [
        "/rules/0/conditions/tableCount/in/1",
        "/rules/0/conditions/tableCount/in/2",
    ]


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_texts_with_forbidden_characters_are_reported(text: str) -> None:
    rule = cache_rule(name=text, description=text, conditions={"userName": text, "host": {"in": ["a", text]}})
    assert find_places(OUT_OF_RANGE, rule) == [
        "/rules/0/conditions/userName",
        "/rules/0/conditions/host/in/1",
        "/rules/0/name",
        "/rules/0/description",
    ]


DUPLICATE_RULE_ID = "duplicate-rule-id"


def test_the_later_rule_is_reported() -> None:
    finding = find_one(DUPLICATE_RULE_ID, cache_rule("a"), cache_rule("b"), cache_rule("a"))
    assert finding.path == ("rules", 2, "id")
    assert finding.message == "Rule 1 in the list already has the id a."


def test_every_later_rule_is_reported() -> None:
    assert find_places(DUPLICATE_RULE_ID, *[cache_rule("a")] * 3) == ["/rules/1/id", "/rules/2/id"]


def test_ids_that_differ_in_case_are_different() -> None:
    assert find_places(DUPLICATE_RULE_ID, cache_rule("a"), cache_rule("A")) == []


INVALID_RULE_ID = "invalid-rule-id"


@pytest.mark.parametrize("rule_id", ["a", "A1", "0", "a.b_c-d", "a" * 128])
def test_valid_ids_are_not_reported(rule_id: str) -> None:
    assert find_places(INVALID_RULE_ID, cache_rule(rule_id)) == []


@pytest.mark.parametrize(
    "rule_id", ["", ".a", "-a", "a b", "a/b", "a\n", "\na", "a\0", "\x1b[31m", "é", "a١", "\ud800", "a" * 129]
)
def test_invalid_ids_are_reported(rule_id: str) -> None:
    finding = find_one(INVALID_RULE_ID, cache_rule("x", id=rule_id))
    assert finding.path == ("rules", 0, "id")
    assert finding.rule_id is None
    assert finding.message.encode().decode().isprintable()


def test_the_message_shortens_a_long_id() -> None:
    assert len(find_one(INVALID_RULE_ID, cache_rule("x", id="é" * 10_000)).message) < 200
