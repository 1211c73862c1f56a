"""``out-of-range``: values of the right type that are not allowed."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import cache_rule, find_one, find_places, rule_with

CODE = "out-of-range"


@pytest.mark.parametrize("ttl", [0, -1, 31_536_001, 10**400])
def test_a_ttl_outside_of_the_bounds_is_reported(ttl: int) -> None:
    assert find_places(CODE, cache_rule(ttlSeconds=ttl)) == ["/rules/0/ttlSeconds"]


@pytest.mark.parametrize("ttl", [1, 31_536_000])
def test_the_bounds_are_allowed(ttl: int) -> None:
    assert find_places(CODE, cache_rule(ttlSeconds=ttl)) == []


@pytest.mark.parametrize(("name", "value"), [("seq", -1), ("tenantId", "warehouse"), ("tenantId", "")])
def test_invalid_read_only_properties_are_reported(name: str, value: object) -> None:
    assert find_places(CODE, **{name: value}) == [f"/{name}"]


@pytest.mark.parametrize(
    ("name", "value"), [("seq", 0), ("tenantId", "0190a5c4-7b1e-7c3a-9d2f-0a1b2c3d4e5f".upper())]
)
def test_valid_read_only_properties_are_allowed(name: str, value: object) -> None:
    assert find_places(CODE, **{name: value}) == []


@pytest.mark.parametrize(
    ("action", "nearest", "hint"),
    [
        ("Denny", "deny", "did you mean deny?"),
        ("x", None, "the actions are cache, bypass, deny, invalidate."),
    ],
)
def test_an_unknown_action_is_reported(action: str, nearest: str | None, hint: str) -> None:
    finding = find_one(CODE, cache_rule(action=action))
    assert finding.path == ("rules", 0, "action")
    assert finding.suggestion == nearest
    assert finding.message == f'There is no action "{action}"; {hint}'


def test_a_long_pattern_is_reported() -> None:
    assert find_places(CODE, rule_with({"userName": {"regex": "a" * 2_000}})) == []
    assert find_places(CODE, rule_with({"userName": {"regex": "a" * 2_001}})) == [
        "/rules/0/conditions/userName/regex"
    ]
    assert find_places(CODE, rule_with({"tables": {"containsAny": ["a.*", "a" * 2_001]}})) == [
        "/rules/0/conditions/tables/containsAny/1"
    ]
    assert find_places(CODE, rule_with({"tables": {"containsAll": ["a" * 2_000, "a" * 2_001]}})) == [
        "/rules/0/conditions/tables/containsAll/1"
    ]


@pytest.mark.parametrize("operator", ["containsAny", "containsAll"])
def test_a_test_has_at_most_a_thousand_patterns(operator: str) -> None:
    names = [f"t{number}" for number in range(1_001)]
    assert find_places(CODE, rule_with({"tables": {operator: names[:1_000]}})) == []
    assert find_places(CODE, rule_with({"tables": {operator: names}})) == [
        f"/rules/0/conditions/tables/{operator}"
    ]
    # Names that are compared as a whole may be many.
    assert find_places(CODE, rule_with({"tables": {"in": names}})) == []


def test_a_number_that_is_not_exact_in_json_is_reported() -> None:
    assert find_places(CODE, rule_with({"tableCount": {"in": [2**53, 2**53 + 1, -(10**400)]}})) == [
        "/rules/0/conditions/tableCount/in/1",
        "/rules/0/conditions/tableCount/in/2",
    ]


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_texts_with_forbidden_characters_are_reported(text: str) -> None:
    rule = cache_rule(name=text, description=text, conditions={"userName": text, "host": {"in": ["a", text]}})
    assert find_places(CODE, rule) == [
        "/rules/0/conditions/userName",
        "/rules/0/conditions/host/in/1",
        "/rules/0/name",
        "/rules/0/description",
    ]
