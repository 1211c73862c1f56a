"""The decision of a ruleset on a request, and its trace."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.conditions import CONDITION_KEYS, InvalidRequest, read_request
from rules.language import Action, Rule, read_rules
from rules.match import Decision, Firing, decide, find_possible, match
from tests.rules.conditions.strategies import conditions, rows

SELECT = {"statementType": "SELECT", "isReadOnly": True, "userName": "ann"}
INSERT = {"statementType": "INSERT", "isDataChange": True, "tables": ["sales.orders"]}


def read(*documents: dict[str, Any]) -> tuple[Rule, ...]:
    return read_rules(documents)


CACHE = {"id": "cache", "conditions": {"statementType": "SELECT"}}
BYPASS = {"id": "bypass", "action": "bypass", "conditions": {"userName": "ann"}}
DENY = {"id": "deny", "action": "deny", "conditions": {"isDataChange": True}}
FIRE = {"id": "fire", "invalidateRules": ["cache", "cache"], "conditions": {"isDataChange": True}}


@pytest.mark.parametrize(
    ("rules", "request_", "rule_id", "action", "statuses"),
    [
        ([], SELECT, None, None, ("PASSTHROUGH",)),
        ([CACHE, BYPASS], SELECT, "cache", Action.CACHE, ("HIT", "MISS")),
        ([BYPASS, CACHE], SELECT, "bypass", Action.BYPASS, ("BYPASS",)),
        ([CACHE | {"enabled": False}, BYPASS], SELECT, "bypass", Action.BYPASS, ("BYPASS",)),
        ([CACHE, DENY], INSERT, "deny", Action.DENY, ("BLOCKED",)),
        ([CACHE, FIRE, DENY], INSERT, "fire", Action.INVALIDATE, ("BYPASS",)),
        ([{"id": "all"}], {}, "all", Action.CACHE, ("HIT", "MISS")),
    ],
)
def test_the_first_enabled_match_decides(
    rules: list[dict[str, Any]],
    request_: dict[str, Any],
    rule_id: str | None,
    action: Action | None,
    statuses: tuple[str, ...],
) -> None:
    decision = match(read(*rules), request_)
    assert (decision.rule_id, decision.action, decision.statuses) == (rule_id, action, statuses)


def test_every_matching_rule_with_targets_fires() -> None:
    also = {"id": "also", "action": "cache", "invalidateRules": ["x"], "requireInvalidation": True}
    off = FIRE | {"id": "off", "enabled": False}
    elsewhere = FIRE | {"id": "elsewhere", "conditions": {"isDDL": True}}
    bypass = {"id": "bypass", "action": "bypass", "conditions": {"isDataChange": True}}

    decision = match(read(bypass, FIRE, off, elsewhere, also), INSERT)

    assert decision.rule_id == "bypass"
    assert decision.fired == (
        Firing(rule_id="fire", targets=("cache",), required=False),
        Firing(rule_id="also", targets=("x",), required=True),
    )


def test_no_rule_fires_if_a_deny_rule_decides() -> None:
    denying = DENY | {"invalidateRules": ["cache"]}
    assert match(read(denying, FIRE), INSERT).fired == ()


def test_rules_fire_if_a_deny_rule_matches_but_does_not_decide() -> None:
    decision = match(read(FIRE, DENY), INSERT)
    assert decision.rule_id == "fire"
    assert [fired.rule_id for fired in decision.fired] == ["fire"]


def test_the_trace_explains_every_rule_and_condition() -> None:
    rule = {
        "id": "r",
        "conditions": {
            "any": [{"userName": {"startsWith": "b"}}, {"tables": {"containsAny": ["sales.*"]}}],
            "not": {},
        },
    }
    decision = match(read(rule, FIRE | {"enabled": False}, {"id": "rest"}), INSERT)

    first, second, third = decision.trace
    assert (first.rule_id, first.enabled, first.matched, first.decided, first.fired) == (
        "r",
        True,
        False,
        False,
        False,
    )
    assert first.conditions is not None
    any_of, negation = first.conditions.parts
    assert (first.conditions.path, first.conditions.operator, first.conditions.matched) == ("", "all", False)
    assert (any_of.path, any_of.operator, any_of.matched) == ("/any", "any", True)
    assert [(part.path, part.matched) for part in any_of.parts] == [("/any/0", False), ("/any/1", True)]
    (starts_with,), (contains_any,) = any_of.parts[0].parts, any_of.parts[1].parts
    assert (starts_with.path, starts_with.operator) == ("/any/0/userName/startsWith", "startsWith")
    assert (starts_with.value, starts_with.matched) == (None, False)
    assert (contains_any.value, contains_any.matched) == (frozenset({"sales.orders"}), True)
    assert (negation.path, negation.matched) == ("/not", False)
    assert (second.enabled, second.matched, second.conditions) == (False, False, None)
    assert (third.matched, third.decided, third.fired) == (True, True, False)


def test_a_value_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"^isDDL must be a boolean or null, not a string$"):
        match((), {"isDDL": "yes"})


_rules = st.lists(
    st.fixed_dictionaries(
        {"conditions": conditions, "enabled": st.booleans()},
        optional={"action": st.sampled_from([*Action]), "invalidateRules": st.just(["t"])},
    ),
    max_size=5,
)


@settings(max_examples=200, deadline=None)
@given(documents=_rules, row=rows)
def test_decide_and_match_give_the_same_decision(
    documents: list[dict[str, Any]], row: dict[str, Any]
) -> None:
    rules = read(*({"id": f"r{n}"} | document for n, document in enumerate(documents)))
    traced = match(rules, row)
    assert decide(rules, read_request(row)) == Decision(traced.action, traced.rule_id, traced.fired)


@settings(max_examples=200, deadline=None)
@given(documents=_rules, row=rows, names=st.sets(st.sampled_from([*CONDITION_KEYS])))
def test_the_rule_that_decides_is_possible_whatever_is_known(
    documents: list[dict[str, Any]], row: dict[str, Any], names: set[str]
) -> None:
    rules = read(*({"id": f"r{n}"} | document for n, document in enumerate(documents)))
    request = read_request(row)
    decided = {decide(rules, request).rule_id} - {None}
    assert decided <= {rule.id for rule in find_possible(rules, {name: request[name] for name in names})}
    assert decided == {rule.id for rule in find_possible(rules, request)}
