"""The search for wider rules finds the same as comparing all pairs, within its limits."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.conditions import parse_conditions
from rules.conditions.implication import implies
from rules.conditions.normal import normalize
from rules.lint import reach
from rules.lint.reach import find_wider
from tests.rules.conditions.strategies import conditions

if TYPE_CHECKING:
    from rules.conditions.normal import Normal


def normal(document: dict[str, Any]) -> Normal:
    return normalize(parse_conditions(document))


@settings(max_examples=150, deadline=None)
@given(documents=st.lists(conditions, max_size=8))
def test_a_found_rule_is_earlier_and_wider(documents: list[dict[str, Any]]) -> None:
    forms = [normal(document) for document in documents]
    for index, found in enumerate(find_wider(forms)[0]):
        if found is not None:
            narrow, wide = forms[index], forms[found]
            assert found < index
            assert narrow is not None
            assert wide is not None
            assert implies(narrow, wide)


def test_all_wider_rules_are_found_among_lists_of_values() -> None:
    keys = ["userName", "host", "origin", "statementType", "operationType"]
    draw = random.Random(7)  # noqa: S311
    documents = [
        {key: draw.choice("ab") for key in draw.sample(keys, draw.randint(1, len(keys)))} for _ in range(200)
    ]
    forms = [normal(document) for document in documents]

    covered = [found is not None for found in find_wider(forms)[0]]

    assert covered == [
        any(narrow is not None and wide is not None and implies(narrow, wide) for wide in forms[:index])
        for index, narrow in enumerate(forms)
    ]


@pytest.mark.slow
def test_the_search_of_a_hostile_ruleset_is_limited() -> None:
    keys = [
        "userName",
        "host",
        "origin",
        "referer",
        "statementType",
        "operationType",
        "adapterType",
        "userAgent",
    ]
    draw = random.Random(7)  # noqa: S311
    documents = [
        {key: {"contains": f"{draw.randrange(10**6)}"} for key in draw.sample(keys, 4)} for _ in range(3_000)
    ]
    wider, incomplete = find_wider([normal(document) for document in documents])
    assert wider == [None] * 3_000
    assert 1_000 < len(incomplete) < 3_000


@pytest.mark.parametrize(
    ("steps", "same_host", "incomplete"),
    [
        # The first is in the index under its tables, because fewer look for them than for its host.
        (16, 9, set()),
        (15, 9, {1}),
        # It is under its host, where the second does not look.
        (15, 0, set()),
    ],
)
def test_a_candidate_is_compared_once_if_it_has_the_rarest_terms(
    monkeypatch: pytest.MonkeyPatch, steps: int, same_host: int, incomplete: set[int]
) -> None:
    monkeypatch.setattr(reach, "_MAX_STEPS", steps)
    first: dict[str, Any] = {"host": "x", "tables": {"containsAny": ["a", "b"]}}
    second: dict[str, Any] = {"host": "y", "tables": {"containsAll": ["a", "b"]}}
    others = [{"host": "x", "origin": f"o{number}"} for number in range(same_host)]
    found = find_wider([normal(document) for document in (first, second, *others)])[1]
    assert set(found) & {1} == incomplete


def test_the_search_continues_after_a_known_candidate() -> None:
    first: dict[str, Any] = {"host": "x", "tables": {"containsAny": ["a", "b"]}}
    wide: dict[str, Any] = {"tables": {"containsAll": ["b", "c"]}}
    narrow: dict[str, Any] = {"host": "y", "tables": {"containsAll": ["a", "b", "c"]}}
    others = [{"host": "x", "origin": f"o{number}"} for number in range(9)]
    assert find_wider([normal(document) for document in (first, wide, narrow, *others)])[0][2] == 1


@pytest.mark.parametrize(("steps", "result"), [(30, ([None, 0], [])), (29, ([None, None], [1]))])
def test_the_limit_counts_the_operands_of_alternatives(
    monkeypatch: pytest.MonkeyPatch, steps: int, result: tuple[list[int | None], list[int]]
) -> None:
    monkeypatch.setattr(reach, "_MAX_STEPS", steps)
    wide: dict[str, Any] = {"any": [{"host": "x"}, {"origin": "y"}]}
    assert find_wider([normal(wide), normal({**wide, "userName": "u"})]) == result


def test_a_late_search_compares_nothing_and_says_so() -> None:
    forms = [normal(document) for document in ({}, {"userName": "a"}, {"userName": "a"})]
    assert find_wider(forms) == ([None, 0, 1], [])
    assert find_wider(forms, is_late=lambda: True) == ([None, None, 1], [0, 1])
