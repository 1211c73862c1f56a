"""Invalidation by table: which rules get a marker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.conditions.patterns import glob_matches
from rules.language import Action, complete_rule, read_rules
from rules.match import decide
from rules.models import Marker
from rules.table_invalidation import find_rules
from rules.write import write_ruleset
from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from tests.factories import World

RULES: list[dict[str, Any]] = [
    {"id": "hr", "conditions": {"tables": {"containsAny": ["hr.*"]}}},
    {
        "id": "none",
        "action": "bypass",
        "conditions": {"tables": {"containsAny": ["ops.*"], "ignoreCase": True}},
    },
    {"id": "off", "enabled": False},
    {"id": "one", "conditions": {"tables": "sales.orders"}},
    {"id": "rest", "conditions": {"isReadOnly": True}},
]


def ids(rules: list[dict[str, Any]], *tables: str) -> list[str]:
    return [rule["id"] for rule in find_rules([complete_rule(rule) for rule in rules], tables)]


@pytest.mark.parametrize(
    ("tables", "found"),
    [
        (["sales.orders"], ["hr", "one", "rest"]),
        (["SALES.ORDERS"], ["hr", "one", "rest"]),
        (["sales.items"], ["hr", "rest"]),
        (["hr.people"], ["hr", "rest"]),
        (["ops.jobs"], ["hr"]),
        (["ops.*"], ["hr"]),
        (["*"], ["hr", "one", "rest"]),
    ],
)
def test_the_rules_that_can_decide_a_statement_on_a_table(tables: list[str], found: list[str]) -> None:
    """A statement on sales.orders may read hr.people too, and another case of a name is the same table."""
    assert ids(RULES, *tables) == found


_NAMES = ["a.x", "a.y", "b.x", "A.X"]
_CONDITIONS = st.recursive(
    st.one_of(
        st.just({}),
        st.sampled_from([True, False]).map(lambda value: {"isReadOnly": value}),
        st.sampled_from(["ann", "bo"]).map(lambda value: {"userName": value}),
        st.tuples(
            st.sampled_from(["containsAny", "containsAll"]),
            st.lists(st.sampled_from([*_NAMES, "a.*", "*"]), min_size=1, max_size=2),
            st.booleans(),
        ).map(lambda it: {"tables": {it[0]: it[1], "ignoreCase": it[2]}}),
        st.sampled_from(_NAMES).map(lambda name: {"tables": name}),
        st.booleans().map(lambda value: {"tables": {"exists": value}}),
    ),
    lambda inner: st.one_of(
        inner.map(lambda it: {"not": it}),
        st.lists(inner, min_size=1, max_size=2).map(lambda it: {"any": it}),
        st.lists(inner, min_size=1, max_size=2).map(lambda it: {"all": it}),
    ),
    max_leaves=4,
)
_RULESETS = st.lists(
    st.tuples(_CONDITIONS, st.sampled_from(["cache", "cache", "bypass", "deny"]), st.booleans()),
    min_size=1,
    max_size=4,
)
_REQUESTS: list[dict[str, Any]] = [
    {"isReadOnly": read_only, "userName": user, "tables": tables}
    for read_only in (True, False)
    for user in ("ann", None)
    for tables in ([], ["a.x"], ["A.X"], ["a.y", "b.x"], ["a.x", "b.x"], ["a.x", "a.y", "b.x"])
]


@settings(max_examples=300)
@given(
    drawn=_RULESETS, tables=st.lists(st.sampled_from([*_NAMES, "a.*", "B.*", "*"]), min_size=1, max_size=2)
)
def test_no_rule_that_caches_a_statement_on_a_table_is_missed(
    drawn: list[tuple[dict[str, Any], str, bool]], tables: list[str]
) -> None:
    documents = [
        complete_rule({"id": f"r{index}", "conditions": conditions, "action": action, "enabled": enabled})
        for index, (conditions, action, enabled) in enumerate(drawn)
    ]
    found = {rule["id"] for rule in find_rules(documents, tables)}
    rules = read_rules(documents)
    for request in _REQUESTS:
        reads = any(
            glob_matches(pattern.lower(), name.lower()) for pattern in tables for name in request["tables"]
        )
        decision = decide(rules, {**request, "tables": frozenset(request["tables"])})
        if reads and decision.action is Action.CACHE:
            assert decision.rule_id in found


def test_one_marker_per_rule_all_at_once(world: World) -> None:
    write_ruleset(tenant_id=world.tenant.pk, document={"rules": RULES}, actor="x")
    token = factories.pat_token(world.owner, "cache-admin", tenants=[str(world.tenant.pk)])
    client, path = ApiClient(token), f"/tenants/{world.tenant.pk}/invalidations"
    preview = client.post(f"{path}/preview", {"tables": ["sales.items"]})
    assert (preview.status_code, preview.json()["ruleIds"]) == (200, ["hr", "rest"])
    assert [target["ruleId"] for target in preview.json()["targets"]] == ["hr", "rest"]
    assert not Marker.objects.exists()

    answer = client.post(path, {"tables": ["sales.items"], "reason": "load"})
    markers = answer.json()["markers"]
    assert (answer.status_code, [marker["targetRuleId"] for marker in markers]) == (201, ["hr", "rest"])
    assert {marker["invalidatedBy"]["triggeredBy"] for marker in markers} == {"Tables sales.items"}
    assert [marker["metadata"] for marker in markers] == [{"reason": "load"}] * 2
    assert len({marker["invalidatedAt"] for marker in markers}) == 1
    assert Marker.objects.active().count() == 2
    assert len(client.post(path, {"tables": ["sales.items"]}).json()["markers"]) == 2
    assert Marker.objects.count() == 4
    # The user has chosen one of them in the preview.
    chosen = client.post(path, {"tables": ["sales.items"], "ruleIds": ["rest"]}).json()["markers"]
    assert [marker["targetRuleId"] for marker in chosen] == ["rest"]
    refused = client.post(path, {"tables": ["sales.items"], "ruleIds": ["rest", "one"]})
    assert (refused.status_code, refused.json()["details"][0]["path"]) == (400, "/ruleIds")
    assert Marker.objects.count() == 5


def test_without_a_rule_there_is_no_marker(world: World) -> None:
    token = factories.pat_token(world.owner, "cache-admin", tenants=[str(world.tenant.pk)])
    answer = ApiClient(token).post(f"/tenants/{world.tenant.pk}/invalidations", {"tables": ["x"]})
    assert (answer.status_code, answer.json()["markers"]) == (201, [])


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "/tables"),
        ({"tables": []}, "/tables"),
        ({"tables": "sales"}, "/tables"),
        ({"tables": [5]}, "/tables/0"),
        ({"tables": ["a"] * 101}, "/tables"),
        ({"tables": ["a"], "rule": "x"}, "/rule"),
        ({"tables": ["a"], "ruleIds": []}, "/ruleIds"),
    ],
)
def test_a_bad_body_is_a_400_that_names_the_place(world: World, body: dict[str, Any], path: str) -> None:
    token = factories.pat_token(world.owner, "cache-admin", tenants=[str(world.tenant.pk)])
    answer = ApiClient(token).post(f"/tenants/{world.tenant.pk}/invalidations", body)
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, path)
