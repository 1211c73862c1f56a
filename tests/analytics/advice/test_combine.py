"""Edits of several recommendations in one ruleset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.advice.combine import Exclusive, combine_edits, with_own_ids
from analytics.advice.proposal import RuleEdit, apply_edits


def rule(rule_id: str, *targets: str, ttl: int = 60) -> dict[str, Any]:
    return {"id": rule_id, "ttlSeconds": ttl, "swr": 0, "invalidateRules": [*targets]}


A, B, C = rule("a"), rule("b"), rule("c", "a", "b")
RULES = [A, B, C]
ADD_X, ADD_Y = RuleEdit.insert(rule("x")), RuleEdit.insert(rule("y"), before="a")
TARGET_X = RuleEdit.replace(rule("c", "a", "b", "x"))


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([[ADD_X], [ADD_Y]], [rule("y"), A, B, C, rule("x")]),
        # What both add is there once.
        ([[ADD_X], [ADD_X, ADD_Y]], [rule("y"), A, B, C, rule("x")]),
        (
            [[RuleEdit.replace(rule("a", ttl=5))], [RuleEdit.replace({**A, "swr": 7})]],
            [{**A, "ttlSeconds": 5, "swr": 7}, B, C],
        ),
        # One adds a target, another takes one.
        (
            [[ADD_X, TARGET_X], [RuleEdit.remove("b"), RuleEdit.replace(rule("c", "a"))]],
            [A, rule("c", "a", "x"), rule("x")],
        ),
        ([[RuleEdit.move("c", before="a")], [RuleEdit.replace(rule("c", "a"))]], [rule("c", "a"), A, B]),
        ([[RuleEdit.remove("a")], [RuleEdit.remove("a")]], [B, C]),
        # A group changes what it has added, and removes what it put something before.
        ([[ADD_X, RuleEdit.replace(rule("x", ttl=9))], []], [A, B, C, rule("x", ttl=9)]),
        ([[ADD_Y, RuleEdit.remove("a")]], [rule("y"), B, C]),
    ],
)
def test_what_groups_want_is_done(groups: Sequence[Sequence[RuleEdit]], expected: Sequence[Any]) -> None:
    assert combine_edits(RULES, groups) == expected


@pytest.mark.parametrize(
    ("first", "second", "rule_id"),
    [
        ([RuleEdit.replace(rule("a", ttl=5))], [RuleEdit.replace(rule("a", ttl=6))], "a"),
        ([ADD_X], [RuleEdit.insert(rule("x", ttl=5))], "x"),
        ([RuleEdit.move("a", before="c")], [RuleEdit.move("a", before="b")], "a"),
        ([RuleEdit.remove("a")], [RuleEdit.replace(rule("a", ttl=5))], "a"),
        ([RuleEdit.remove("a")], [ADD_Y], "a"),
        ([RuleEdit.remove("a")], [RuleEdit.move("c", before="a")], "a"),
    ],
)
@pytest.mark.parametrize("is_turned", [False, True])
def test_groups_that_want_different_things_are_named(
    first: Sequence[RuleEdit], second: Sequence[RuleEdit], rule_id: str, *, is_turned: bool
) -> None:
    groups = [second, [ADD_X][:0], first] if is_turned else [first, [], second]
    with pytest.raises(Exclusive) as refused:
        combine_edits(RULES, groups)
    assert (refused.value.first, refused.value.second, refused.value.rule_id) == (0, 2, rule_id)


def test_rules_that_have_one_id_by_chance_get_ids_of_their_own() -> None:
    other = [RuleEdit.insert(rule("x", ttl=5)), RuleEdit.replace(rule("c", "a", "b", "x"))]
    groups = with_own_ids([*RULES, rule("x-2")], [[ADD_X], other, [ADD_X]])
    assert groups[::2] == [[ADD_X], [ADD_X]]
    assert combine_edits(RULES, groups) == [A, B, rule("c", "a", "b", "x-3"), rule("x"), rule("x-3", ttl=5)]


@st.composite
def _edits(draw: st.DrawFn) -> list[RuleEdit]:
    """Return edits that one after another fit the rules."""
    rules: list[Mapping[str, Any]] = list(RULES)
    edits: list[RuleEdit] = []
    for _ in range(draw(st.integers(0, 4))):
        ids = [one["id"] for one in rules]
        changed = rule(
            draw(st.sampled_from([*ids, "x", "y"])),
            *draw(st.lists(st.sampled_from("abx"), unique=True)),
            ttl=draw(st.integers(1, 3)),
        )
        if changed["id"] not in ids:
            edit = RuleEdit.insert(changed, before=draw(st.sampled_from([None, *ids])))
        else:
            others = [name for name in ids if name != changed["id"]]
            kinds = [RuleEdit.replace(changed), RuleEdit.remove(changed["id"])]
            if others:
                kinds.append(RuleEdit.move(changed["id"], before=draw(st.sampled_from(others))))
            edit = draw(st.sampled_from(kinds))
        # No recommendation names a rule twice, but to change it.
        if edit.op != "replace" and any(one.rule_id == edit.rule_id for one in edits):
            continue
        edit.apply(rules)
        edits.append(edit)
    return edits


@given(_edits())
def test_one_group_alone_is_what_its_edits_say(edits: list[RuleEdit]) -> None:
    assert combine_edits(RULES, [edits]) == apply_edits(RULES, edits)


@given(_edits(), _edits())
def test_the_rules_of_two_groups_do_not_depend_on_who_is_first(
    first: list[RuleEdit], second: list[RuleEdit]
) -> None:
    def rules_of(*groups: list[RuleEdit]) -> dict[str, Any] | None:
        try:
            rules = combine_edits(RULES, groups)
        except Exclusive:
            return None
        return {one["id"]: {**one, "invalidateRules": sorted(one["invalidateRules"])} for one in rules}

    assert rules_of(first, second) == rules_of(second, first)
