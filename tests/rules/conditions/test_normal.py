"""The normal form means the same as the conditions, and shows if they always or never match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.conditions import matches, parse_conditions, read_request
from rules.conditions.implication import implies
from rules.conditions.normal import ALWAYS, NEVER, Choice, Normal, normalize
from tests.rules.conditions.strategies import conditions, rows

if TYPE_CHECKING:
    from rules.conditions import Request


def normal(document: dict[str, Any]) -> Normal:
    return normalize(parse_conditions(document))


def normal_matches(form: Normal, request: Request) -> bool:
    return form is not None and all(
        any(normal_matches(alternative, request) for alternative in part.alternatives)
        if isinstance(part, Choice)
        else part.accepts(request[part.test.key.name])
        for part in form
    )


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(document=conditions, entries=st.lists(rows, min_size=1, max_size=5))
def test_the_normal_form_matches_the_same_requests_as_the_conditions(
    document: dict[str, Any], entries: list[dict[str, Any]]
) -> None:
    condition = parse_conditions(document)
    for entry in entries:
        request = read_request(entry)
        assert normal_matches(normalize(condition), request) is matches(condition, request)
        assert normal_matches(normalize(condition, negated=True), request) is not matches(condition, request)


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(narrow=conditions, wide=conditions, entries=st.lists(rows, min_size=1, max_size=5))
def test_an_implied_condition_matches_all_requests_of_the_narrower_one(
    narrow: dict[str, Any], wide: dict[str, Any], entries: list[dict[str, Any]]
) -> None:
    for first, second in (
        (narrow, wide),
        (wide, narrow),
        (narrow | wide, wide),
        ({"all": [narrow, wide]}, wide),
    ):
        known, wanted = normal(first), normal(second)
        if known is None or wanted is None or not implies(known, wanted):
            continue
        for entry in entries:
            request = read_request(entry)
            assert not normal_matches(known, request) or normal_matches(wanted, request)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"all": []},
        {"all": [{}, {"all": []}]},
        {"any": [{}, {"userName": "ann"}]},
        {"not": {"any": []}},
        {"userName": {"notIn": []}},
        {"any": [{"userName": "ann"}, {"userName": {"ne": "ann"}}]},
        {"any": [{"userName": {"contains": "a"}}, {"not": {"userName": {"contains": "a"}}}]},
        {"tableCount": {"ne": 1.5}},
    ],
)
def test_conditions_that_always_match(document: dict[str, Any]) -> None:
    assert normal(document) == ALWAYS
    assert normal({"not": document}) is NEVER


@pytest.mark.parametrize(
    "document",
    [
        {"any": []},
        {"not": {}},
        {"userName": {"in": []}},
        {"userName": {"eq": "ann", "ne": "ann"}},
        {"userName": {"eq": "ann", "startsWith": "b"}},
        {"userName": {"in": ["ann", "bob"], "regex": "^c"}},
        {"userName": {"exists": False, "contains": "a"}},
        {"all": [{"host": {"startsWith": "a"}}, {"host": {"startsWith": "b"}}]},
        {"all": [{"userName": "ann"}, {"userName": "bob"}]},
        {"all": [{"isDDL": True}, {"isDDL": False}]},
        {"isDDL": {"exists": True, "notIn": [True, False]}},
        {"tableCount": {"gt": 3, "lt": 4}},
        {"tableCount": 1.5},
        {"tables": {"containsAny": []}},
        {"tables": {"eq": "a.b", "containsAny": ["c.*"]}},
        {"clientIp": {"eq": "10.0.0.1", "cidr": "192.168.0.0/16"}},
        {"any": [{"userName": {"in": []}}, {"not": {}}]},
    ],
)
def test_conditions_that_never_match(document: dict[str, Any]) -> None:
    assert normal(document) is NEVER
    assert normal({"not": document}) == ALWAYS


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"userName": "ann"}, {"userName": {"eq": "ann"}}),
        ({"userName": "ann"}, {"userName": {"in": ["ann", "ann"]}}),
        ({"userName": {"in": ["a", "b"]}}, {"any": [{"userName": "b"}, {"userName": "a"}]}),
        ({"userName": "ann", "isDDL": True}, {"all": [{"isDDL": True}, {"userName": "ann"}]}),
        ({"isDDL": True}, {"isDDL": {"in": [True, False], "ne": False}}),
        ({"not": {"userName": "ann"}}, {"userName": {"ne": "ann"}}),
        ({"not": {"any": [{"host": "a"}, {"origin": "b"}]}}, {"host": {"ne": "a"}, "origin": {"ne": "b"}}),
        ({"not": {"not": {"host": {"regex": "a"}}}}, {"host": {"regex": "a"}}),
        ({"userName": {"eq": "ANN", "ignoreCase": True}}, {"userName": {"eq": "ann", "ignoreCase": True}}),
        ({"tableCount": {"gt": 2}}, {"tableCount": {"gte": 3}}),
        ({"tables": {"containsAll": ["a.*"]}}, {"tables": {"containsAny": ["a.*"]}}),
        ({"userName": {"exists": True, "contains": "a"}}, {"userName": {"contains": "a"}}),
        ({"userName": {"contains": ""}}, {"userName": {"exists": True}}),
    ],
)
def test_conditions_with_the_same_meaning_have_the_same_normal_form(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert normal(one) == normal(other)


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ({"userName": "ann", "isDDL": True}, {"userName": "ann"}),
        ({"userName": "ann"}, {"userName": {"in": ["ann", "bob"]}}),
        ({"userName": "ann"}, {"userName": {"startsWith": "a"}}),
        ({"userName": "ann"}, {"userName": {"ne": "bob"}}),
        ({"userName": {"startsWith": "a"}}, {"userName": {"exists": True}}),
        ({"userName": {"startsWith": "abc"}}, {"userName": {"contains": "b"}}),
        ({"userName": {"startsWith": "a"}}, {"userName": {"ne": "bob"}}),
        ({"tables": {"containsAny": ["sales.orders"]}}, {"tables": {"containsAny": ["sales.*"]}}),
        ({"tables": {"containsAll": ["hr.x", "sales.orders"]}}, {"tables": {"containsAny": ["sales.*"]}}),
        ({"tables": {"containsAll": ["a.b", "c.d"]}}, {"tables": {"containsAll": ["a.*", "c.*"]}}),
        ({"tables": "sales.orders"}, {"tables": {"containsAny": ["sales.*"]}}),
        ({"tableCount": {"gte": 5}}, {"tableCount": {"gt": 3}}),
        ({"tableCount": {"lt": 4}}, {"tableCount": {"lte": 4}}),
        ({"userName": {"endsWith": "-etl"}}, {"userName": {"endsWith": "etl"}}),
        ({"userName": {"exists": False}}, {"userName": {"ne": "ann"}}),
        ({"userName": {"in": ["ann", "amy"]}}, {"userName": {"regex": "^a"}}),
        ({"clientIp": {"cidr": "10.1.0.0/16"}}, {"clientIp": {"cidr": ["10.0.0.0/8"]}}),
        ({"userName": "ann"}, {"any": [{"userName": {"startsWith": "a"}}, {"isDDL": True}]}),
        ({"isDDL": True}, {}),
        ({"userName": {"notIn": ["a", "b"]}}, {"userName": {"ne": "a"}}),
    ],
)
def test_a_condition_implies_a_wider_one(narrow: dict[str, Any], wide: dict[str, Any]) -> None:
    known, wanted = normal(narrow), normal(wide)
    assert known is not None
    assert wanted is not None
    assert implies(known, wanted)
    assert not implies(wanted, known)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"userName": {"contains": "a"}}, {"userName": {"startsWith": "a"}}),
        ({"not": {"userName": {"contains": "ab"}}}, {"not": {"userName": {"contains": "abc"}}}),
        ({"userName": {"eq": "a", "ignoreCase": True}}, {"userName": "b"}),
        ({"userName": {"regex": "a"}}, {"userName": {"regex": "b"}}),
        ({"userName": {"ne": "a"}}, {"userName": {"contains": "b"}}),
        ({"clientIp": {"cidr": "10.0.0.0/8"}}, {"clientIp": {"cidr": "::/0"}}),
    ],
)
def test_uncertain_implications_are_false(one: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = normal(one), normal(other)
    assert first is not None
    assert second is not None
    assert not implies(first, second)
