"""``per-user-table-shared``: rows of one user are not served to another."""

from __future__ import annotations

from time import thread_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.conditions.patterns import fold_case, glob_matches
from rules.language import read_rules
from rules.lint import lint_ruleset
from rules.match import match
from rules.tables.warehouse import WarehouseTables

CODE = "per-user-table-shared"
TABLE = {"tables": {"containsAny": ["hr.*"], "ignoreCase": True}}
CASED = {"tables": {"containsAny": ["hr.*"]}}


def cache(conditions: Any = None, **fields: Any) -> dict[str, Any]:
    return {"id": "c", "conditions": conditions or {}, "varyBy": []} | fields


def before(conditions: Any, action: str = "bypass", **fields: Any) -> dict[str, Any]:
    return {"id": "first", "action": action, "conditions": conditions} | fields


def find(*rules: dict[str, Any], tables: tuple[str, ...] = ("HR.People",)) -> list[str | None]:
    return [
        f.rule_id
        for f in lint_ruleset({"rules": list(rules)}, tables=WarehouseTables(per_user=tables)).errors
    ]


@pytest.mark.parametrize(
    "conditions",
    [
        {},
        {"isReadOnly": True},
        CASED,
        TABLE,
        # A statement can read several tables.
        {"tables": {"containsAny": ["sales.*"]}},
        {"tables": {"ne": "hr.people"}},
        # It does not match HR.PEOPLE.
        {"not": CASED},
        {"tables": {"eq": "hr.people"}},
        {"tables": {"in": ["a", "HR.PEOPLE"]}},
        {"any": [{"not": TABLE}, {"isDDL": True}]},
        {"not": {"tables": {"containsAny": ["hr.people2"], "ignoreCase": True}}},
    ],
)
def test_a_rule_that_can_decide_such_a_statement_is_refused(conditions: dict[str, Any]) -> None:
    assert find(cache(conditions)) == ["c"]


@pytest.mark.parametrize(
    "conditions",
    [
        {"not": TABLE},
        {"not": {"tables": {"containsAny": ["*"]}}},
        {"not": {"tables": {"containsAny": ["sales.*", "hR.pEOPLE"], "ignoreCase": True}}},
        {"tables": "sales.orders"},
        {"tables": {"in": ["sales.orders", "hr.people2"], "ignoreCase": True}},
        {"tables": {"exists": False}},
        {"any": [{"not": TABLE}, {"tables": "sales.orders"}]},
        {"all": [{"isDDL": True}, {"isDDL": False}]},
    ],
)
def test_a_rule_whose_conditions_exclude_the_table_is_allowed(conditions: dict[str, Any]) -> None:
    assert find(cache(conditions)) == []


@pytest.mark.parametrize("columns", [["userName"], ["host", "userTokenHash"], ["sessionId"]])
def test_a_rule_that_varies_by_user_is_allowed(columns: list[str]) -> None:
    assert find(cache(varyBy=columns)) == []


@pytest.mark.parametrize("columns", [[], ["host"], ["clientIp", "serverHostname", "operationType"]])
def test_other_columns_do_not_tell_users_apart(columns: list[str]) -> None:
    assert find(cache(varyBy=columns)) == ["c"]


def test_a_rule_without_vary_by_is_refused_and_a_disabled_one_is_not() -> None:
    rule = {"id": "c", "conditions": {}}
    assert find(rule) == ["c"]
    assert find(rule | {"enabled": False}) == []


@pytest.mark.parametrize(
    "earlier",
    [
        before(TABLE),
        before(TABLE, "deny"),
        before(TABLE, "cache", varyBy=["userName"]),
        before({"tables": {"containsAny": ["*"]}}),
        before({"tables": {"exists": True}}),
        before({"isReadOnly": True}),
        before({"all": [TABLE, {"isReadOnly": True}]}),
    ],
)
def test_an_earlier_rule_that_decides_all_such_statements_protects(earlier: dict[str, Any]) -> None:
    assert find(earlier, cache({"isReadOnly": True})) == []
    assert find(cache({"isReadOnly": True}), earlier) == ["c"]
    assert find(earlier | {"enabled": False}, cache({"isReadOnly": True})) == ["c"]


@pytest.mark.parametrize(
    "earlier",
    [
        before(CASED),
        before({"all": [TABLE, {"isDDL": True}]}),
        before({"tables": {"containsAny": ["hr.people2"], "ignoreCase": True}}),
        before({"tables": {"containsAny": ["p*", "hr.people2"], "ignoreCase": True}}),
    ],
)
def test_an_earlier_rule_that_lets_some_statements_through_does_not(earlier: dict[str, Any]) -> None:
    assert find(earlier, cache({"isReadOnly": True})) == ["c"]


def test_an_earlier_shared_rule_does_not_protect() -> None:
    assert find(before(TABLE, "cache", varyBy=["host"]), cache()) == ["first", "c"]


def test_every_pattern_must_be_safe_and_the_finding_names_the_others() -> None:
    result = lint_ruleset(
        {"rules": [before(TABLE), cache()]}, tables=WarehouseTables(per_user=("hr.*", "Pay.*", "x.y"))
    )
    (finding,) = result.errors
    assert (finding.code, finding.path, finding.suggestion) == (CODE, ("rules", 1, "varyBy"), "userName")
    assert '"Pay.*"' in finding.message
    assert '"x.y"' in finding.message
    assert "hr.*" not in finding.message


def test_without_tables_nothing_is_refused() -> None:
    assert find(cache(), tables=()) == []


@pytest.mark.slow
def test_many_rules_and_patterns_take_a_limited_time_and_are_never_let_through_unchecked() -> None:
    rules = [
        before({"userName": f"u{number}", "tableCount": {"lt": 9}}, id=f"b{number}") for number in range(1500)
    ] + [cache({"userName": {"in": [f"u{number}", "x"]}}, id=f"c{number}") for number in range(1500)]
    started = thread_time()
    result = lint_ruleset(
        {"rules": rules}, tables=WarehouseTables(per_user=tuple(f"t{number}.*" for number in range(500)))
    )
    assert thread_time() - started < 2
    refused = {finding.rule_id for finding in result.errors}
    assert {f"c{number}" for number in range(900)} <= refused


NAMES = ("hr.people", "HR.People", "hr.pay", "sales.orders", "SALES.ORDERS")
tests_on_tables = st.builds(
    lambda operator, names, ignoring: {
        "tables": {operator: names} | ({"ignoreCase": True} if ignoring else {})
    },
    st.sampled_from(["containsAny", "containsAll", "in", "notIn"]),
    st.lists(st.sampled_from([*NAMES, "hr.*", "*", "HR.*", "*.p*"]), max_size=2),
    st.booleans(),
)
tests = tests_on_tables | st.sampled_from(
    [{}, {"isReadOnly": True}, {"userName": "ann"}, {"userName": {"ne": "ann"}}]
)
conditions = st.recursive(
    tests,
    lambda inner: (
        st.builds(lambda part: {"not": part}, inner)
        | st.builds(
            lambda name, parts: {name: parts}, st.sampled_from(["all", "any"]), st.lists(inner, max_size=2)
        )
    ),
    max_leaves=4,
)
rules = st.lists(
    st.builds(
        lambda action, condition, columns: (
            {"action": action, "conditions": condition} | ({"varyBy": columns} if action == "cache" else {})
        ),
        st.sampled_from(["cache", "cache", "bypass"]),
        conditions,
        st.sampled_from([[], ["userName"], ["host"]]),
    ),
    min_size=1,
    max_size=4,
)


@given(
    rules,
    st.lists(st.sampled_from(["hr.*", "HR.people", "sales.orders", "*"]), min_size=1, max_size=2),
    st.lists(
        st.fixed_dictionaries(
            {
                "tables": st.lists(st.sampled_from(NAMES), max_size=3),
                "isReadOnly": st.sampled_from([True, False, None]),
                "userName": st.sampled_from(["ann", "bob"]),
            }
        ),
        min_size=20,
        max_size=20,
    ),
)
def test_no_accepted_ruleset_shares_a_result_of_such_a_table(
    drawn: list[dict[str, Any]], patterns: list[str], requests: list[dict[str, Any]]
) -> None:
    numbered = [rule | {"id": f"r{number}"} for number, rule in enumerate(drawn)]
    refused = {
        finding.rule_id
        for finding in lint_ruleset(
            {"rules": numbered}, tables=WarehouseTables(per_user=tuple(patterns))
        ).errors
        if finding.code == CODE
    }
    known = {rule["id"]: rule for rule in numbered}
    for request in requests:
        names = [fold_case(name) for name in request["tables"]]
        if any(glob_matches(fold_case(pattern), name) for pattern in patterns for name in names):
            rule_id = match(read_rules(numbered), request).rule_id
            rule = known.get(rule_id or "", {"action": "none"})
            assert rule["action"] != "cache" or rule["varyBy"] == ["userName"] or rule_id in refused
