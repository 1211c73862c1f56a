"""``matches-everything``: conditions that always match."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.lint.helpers import find_codes, find_places, rule_with

CODE = "matches-everything"


def test_a_rule_without_conditions_is_reported() -> None:
    assert find_codes({"id": "a", "varyBy": []}) == [
        *("shares-everything", CODE, "caches-non-deterministic", "caches-writes")
    ]
    assert find_codes({"id": "a", "action": "bypass"}) == [CODE]
    assert find_places(CODE, {"id": "a"}) == ["/rules/0"]


@pytest.mark.parametrize(
    "conditions", [{}, {"all": [{}]}, {"not": {"any": []}}, {"any": [{}, {"isDDL": True}]}]
)
def test_conditions_that_always_match_are_reported(conditions: dict[str, Any]) -> None:
    assert find_places(CODE, rule_with(conditions)) == ["/rules/0/conditions"]


def test_a_deny_rule_has_another_finding() -> None:
    assert find_places(CODE, rule_with({}, action="deny")) == []


@pytest.mark.parametrize(
    "conditions",
    [
        {"userName": {"contains": ""}},
        {"userName": {"startsWith": "", "endsWith": ""}},
        {"userName": {"regex": ".*"}},
        {"userName": {"regex": "^"}},
        {"userName": {"regex": "a*$"}},
        {"userName": {"regex": "(?s)^.*$"}},
        {"userName": {"regex": "^[\\s\\S]*$"}},
        {"userName": {"regex": "x|"}},
        {"userName": {"regex": ".*", "ignoreCase": True}},
        {"tables": {"containsAny": ["sales.*", "*"]}},
        {"tables": {"containsAll": ["*", "**"]}},
        {"tableCount": {"gte": 0}},
        {"tableCount": {"gt": -0.5}},
        {"tableCount": {"lte": 2_147_483_647}},
        {"tableCount": {"ne": -1}},
        {"tableCount": {"notIn": [-1, 0.5]}},
        {"any": [{"tableCount": {"gte": 2}}, {"tableCount": {"lt": 2}}]},
        {"any": [{"tableCount": 0}, {"tableCount": {"gt": 0}}]},
        {"any": [{"tableCount": {"lte": 3}}, {"tableCount": {"gt": 1}}]},
        {"any": [{"tableCount": {"in": [0, 1]}}, {"tableCount": {"gte": 1.5}}]},
        {"userName": {"regex": "[^a]*"}},
        {"not": {"tableCount": {"lt": 0}}},
        {"isDDL": {"in": [True, False]}},
        {"any": [{"isDDL": True}, {"isDDL": False}]},
        {"any": [{"isDDL": True}, {"userName": {"contains": ""}}]},
        {"all": [{"tableCount": {"gte": 0}}, {"userName": {"regex": ""}}]},
        {"clientIp": {"cidr": ["0.0.0.0/0", "::/0"]}},
        {"clientIp": {"cidr": ["0.0.0.0/1", "128.0.0.0/1", "::/0"]}},
        {"any": [{"clientIp": {"cidr": "0.0.0.0/0"}}, {"clientIp": {"cidr": "::/0"}}, {"clientIp": "x"}]},
    ],
)
def test_tests_that_hold_for_every_value_count_as_none(conditions: dict[str, Any]) -> None:
    assert find_places(CODE, rule_with(conditions)) == ["/rules/0/conditions"]
    assert find_places(CODE, rule_with(conditions, action="deny")) == []
    assert find_places("unconditional-deny", rule_with(conditions, action="deny")) == ["/rules/0/conditions"]


@pytest.mark.parametrize(
    "conditions",
    [
        {"userName": {"exists": True}},
        {"userName": {"exists": True, "contains": ""}},
        {"userName": {"contains": "", "ne": "a"}},
        {"userName": {"regex": ".+"}},
        {"userName": {"regex": "^.*$"}},
        {"userName": {"regex": "^$"}},
        {"userName": {"regex": "\\b"}},
        {"userName": {"regex": "\\$"}},
        {"userName": {"contains": "*"}},
        {"tables": {"containsAny": ["*.*"]}},
        {"tables": {"containsAll": ["*", "sales.*"]}},
        {"tableCount": {"gte": 1}},
        {"tableCount": {"lte": 100}},
        {"tableCount": {"gte": 0, "lte": 5}},
        {"isDDL": {"in": [True]}},
        {"not": {"userName": {"contains": ""}}},
        {"clientIp": {"cidr": "0.0.0.0/0"}},
        {"any": [{"clientIp": {"cidr": "0.0.0.0/0"}}, {"not": {"clientIp": {"cidr": "::/0"}}}]},
    ],
)
def test_other_conditions_are_not_reported(conditions: dict[str, Any]) -> None:
    assert find_places(CODE, rule_with(conditions)) == []
    assert find_places("unconditional-deny", rule_with(conditions, action="deny")) == []
