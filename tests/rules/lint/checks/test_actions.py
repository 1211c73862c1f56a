"""What goes with the action of a rule: targets, a stale window, columns to vary by."""

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
from tests.rules.lint.helpers import cache_rule, find_codes, find_one, find_places, rule_with

DANGLING_INVALIDATE_REFERENCE = "dangling-invalidate-reference"


def test_an_unknown_target_is_reported_with_the_most_similar_id() -> None:
    finding = find_one(
        DANGLING_INVALIDATE_REFERENCE,
        cache_rule("daily-sales"),
        cache_rule("w", invalidateRules=["daily-sale"]),
    )
    assert finding.path == ("rules", 1, "invalidateRules", 0)
    assert finding.rule_id == "w"
    assert finding.suggestion == "daily-sales"
    assert finding.message == 'There is no rule "daily-sale" to invalidate; did you mean daily-sales?'


def test_no_id_is_suggested_if_none_is_similar() -> None:
    finding = find_one(DANGLING_INVALIDATE_REFERENCE, cache_rule("a", invalidateRules=["zzz"]))
    assert (finding.suggestion, finding.message) == (None, 'There is no rule "zzz" to invalidate.')


def test_a_target_may_be_a_later_rule() -> None:
    assert (
        find_places(DANGLING_INVALIDATE_REFERENCE, cache_rule("w", invalidateRules=["a"]), cache_rule("a"))
        == []
    )


def test_every_reference_is_checked() -> None:
    rules = cache_rule("a"), cache_rule("w", invalidateRules=["x", "a", "y"])
    assert find_places(DANGLING_INVALIDATE_REFERENCE, *rules) == [
        "/rules/1/invalidateRules/0",
        "/rules/1/invalidateRules/2",
    ]


INVALIDATE_TARGET_NOT_CACHE = "invalidate-target-not-cache"


@pytest.mark.parametrize("action", ["bypass", "deny", "invalidate"])
def test_a_target_with_another_action_is_reported(action: str) -> None:
    target = cache_rule("t", action=action)
    finding = find_one(INVALIDATE_TARGET_NOT_CACHE, target, cache_rule("w", invalidateRules=["t"]))
    assert finding.path == ("rules", 1, "invalidateRules", 0)


def test_the_default_action_of_a_target_is_used() -> None:
    rules = (
        cache_rule("a"),
        cache_rule("b", invalidateRules=["a"]),
        cache_rule("c", invalidateRules=["b", "c"]),
    )
    assert find_places(INVALIDATE_TARGET_NOT_CACHE, *rules) == [
        "/rules/2/invalidateRules/0",
        "/rules/2/invalidateRules/1",
    ]


def test_targets_that_are_not_texts_are_not_reported() -> None:
    rules = cache_rule("a", action="deny"), cache_rule("b", invalidateRules=[[], {}, None, "a"])
    assert find_places(INVALIDATE_TARGET_NOT_CACHE, *rules) == ["/rules/1/invalidateRules/3"]


def test_a_disabled_cache_rule_is_allowed_as_target() -> None:
    assert (
        find_places(
            INVALIDATE_TARGET_NOT_CACHE,
            cache_rule("a", enabled=False),
            cache_rule("b", invalidateRules=["a"]),
        )
        == []
    )


INVALIDATE_WITHOUT_TARGETS = "invalidate-without-targets"


def test_the_given_action_needs_targets() -> None:
    assert find_places(INVALIDATE_WITHOUT_TARGETS, cache_rule(action="invalidate")) == [
        "/rules/0/invalidateRules"
    ]
    assert find_places(INVALIDATE_WITHOUT_TARGETS, cache_rule(action="invalidate", invalidateRules=[])) == [
        "/rules/0/invalidateRules"
    ]


def test_the_default_action_needs_targets() -> None:
    assert find_places(INVALIDATE_WITHOUT_TARGETS, cache_rule(invalidateRules=[])) == [
        "/rules/0/invalidateRules"
    ]


def test_other_actions_need_no_targets() -> None:
    assert find_places(INVALIDATE_WITHOUT_TARGETS, cache_rule(action="cache", invalidateRules=[])) == []


def test_targets_of_a_wrong_type_are_not_reported_as_missing() -> None:
    assert find_places(INVALIDATE_WITHOUT_TARGETS, cache_rule(action="invalidate", invalidateRules="a")) == []


SWR_OUT_OF_RANGE = "swr-out-of-range"


@pytest.mark.parametrize("seconds", [-1, 604_801, 10**30])
def test_a_window_outside_of_the_bounds_is_reported(seconds: int) -> None:
    assert find_places(SWR_OUT_OF_RANGE, cache_rule(staleWhileRevalidate=seconds)) == [
        "/rules/0/staleWhileRevalidate"
    ]


@pytest.mark.parametrize("seconds", [0, 604_800])
def test_the_bounds_are_allowed(seconds: int) -> None:
    assert find_places(SWR_OUT_OF_RANGE, cache_rule(staleWhileRevalidate=seconds, ttlSeconds=604_800)) == []


SWR_NOT_CACHEABLE = "swr-not-cacheable"


@pytest.mark.parametrize("action", ["bypass", "deny", "invalidate"])
def test_a_stale_window_of_other_actions_is_reported(action: str) -> None:
    rule = cache_rule(action=action, staleWhileRevalidate=60)
    assert find_places(SWR_NOT_CACHEABLE, rule) == ["/rules/0/staleWhileRevalidate"]


def test_a_stale_window_is_checked_by_the_default_action() -> None:
    rules = (
        cache_rule("a", staleWhileRevalidate=60),
        cache_rule("b", invalidateRules=["a"], staleWhileRevalidate=60),
    )
    assert find_places(SWR_NOT_CACHEABLE, *rules) == ["/rules/1/staleWhileRevalidate"]


SWR_EXCEEDS_TTL = "swr-exceeds-ttl"


def test_a_window_longer_than_the_ttl_is_reported() -> None:
    finding = find_one(SWR_EXCEEDS_TTL, cache_rule(ttlSeconds=60, staleWhileRevalidate=61))
    assert finding.path == ("rules", 0, "staleWhileRevalidate")
    assert finding.message == "staleWhileRevalidate (61 s) must not be longer than ttlSeconds (60 s)."
    assert finding.suggestion == "60"


def test_a_window_longer_than_the_default_ttl_is_reported() -> None:
    assert find_places(SWR_EXCEEDS_TTL, cache_rule(staleWhileRevalidate=86_401)) == [
        "/rules/0/staleWhileRevalidate"
    ]


def test_a_window_as_long_as_the_ttl_is_allowed() -> None:
    assert find_places(SWR_EXCEEDS_TTL, cache_rule(ttlSeconds=60, staleWhileRevalidate=60)) == []


def test_an_invalid_ttl_is_not_compared() -> None:
    assert find_codes(cache_rule(ttlSeconds=0, staleWhileRevalidate=60)) == ["out-of-range"]


REQUIRE_INVALIDATION_WITHOUT_TARGETS = "require-invalidation-without-targets"


def test_a_rule_without_targets_is_reported() -> None:
    assert find_places(REQUIRE_INVALIDATION_WITHOUT_TARGETS, cache_rule(requireInvalidation=True)) == [
        "/rules/0/requireInvalidation"
    ]
    assert find_places(
        REQUIRE_INVALIDATION_WITHOUT_TARGETS, cache_rule(requireInvalidation=True, invalidateRules=[])
    ) == ["/rules/0/requireInvalidation"]


def test_a_rule_with_targets_is_not_reported() -> None:
    assert (
        find_places(
            REQUIRE_INVALIDATION_WITHOUT_TARGETS,
            cache_rule("a"),
            cache_rule(requireInvalidation=True, invalidateRules=["a"]),
        )
        == []
    )


def test_a_rule_without_require_invalidation_is_not_reported() -> None:
    assert find_places(REQUIRE_INVALIDATION_WITHOUT_TARGETS, cache_rule(requireInvalidation=False)) == []


UNCONDITIONAL_DENY = "unconditional-deny"


@pytest.mark.parametrize(
    "conditions",
    [{}, {"all": []}, {"userName": {"notIn": []}}, {"any": [{"isDDL": True}, {"isDDL": {"ne": True}}]}],
)
def test_conditions_that_always_match_are_reported(conditions: dict[str, Any]) -> None:
    assert find_places(UNCONDITIONAL_DENY, rule_with(conditions, action="deny")) == ["/rules/0/conditions"]


def test_a_deny_rule_without_conditions_is_reported() -> None:
    assert find_places(UNCONDITIONAL_DENY, {"id": "a", "action": "deny"}) == ["/rules/0"]


def test_a_disabled_rule_is_reported() -> None:
    assert find_codes({"id": "a", "action": "deny", "enabled": False}) == [UNCONDITIONAL_DENY]


@pytest.mark.parametrize("conditions", [{"isDDL": True}, {"any": []}, {"userNmae": "x"}])
def test_conditions_that_do_not_always_match_are_not_reported(conditions: dict[str, Any]) -> None:
    assert find_places(UNCONDITIONAL_DENY, rule_with(conditions, action="deny")) == []


VARY_NOT_CACHEABLE = "vary-not-cacheable"


@pytest.mark.parametrize("action", ["bypass", "deny", "invalidate"])
@pytest.mark.parametrize("columns", [[], ["userName"]])
def test_columns_to_vary_by_of_other_actions_are_reported(action: str, columns: list[str]) -> None:
    assert find_places(VARY_NOT_CACHEABLE, cache_rule(action=action, varyBy=columns)) == ["/rules/0/varyBy"]


def test_columns_to_vary_by_are_checked_by_the_default_action() -> None:
    rules = (cache_rule("a", varyBy=["host"]), cache_rule("b", invalidateRules=["a"], varyBy=[]))
    assert find_places(VARY_NOT_CACHEABLE, *rules) == ["/rules/1/varyBy"]


UNKNOWN_VARY_COLUMN = "unknown-vary-column"


def test_all_columns_of_the_contract_are_known() -> None:
    columns = [
        "userName",
        "userTokenHash",
        "sessionId",
        "serverHostname",
        "host",
        "clientIp",
        "operationType",
    ]
    assert find_places(UNKNOWN_VARY_COLUMN, cache_rule(varyBy=columns)) == []


@pytest.mark.parametrize("column", ["tables", "username", "userAgent", "", "\ud800"])
def test_other_columns_are_reported(column: str) -> None:
    assert find_places(UNKNOWN_VARY_COLUMN, cache_rule(varyBy=["host", column])) == ["/rules/0/varyBy/1"]


def test_the_nearest_column_is_suggested() -> None:
    assert find_one(UNKNOWN_VARY_COLUMN, cache_rule(varyBy=["username"])).suggestion == "userName"


def test_values_that_are_no_texts_have_the_wrong_type() -> None:
    assert find_places("wrong-type", cache_rule(varyBy=["host", 1, None])) == [
        "/rules/0/varyBy/1",
        "/rules/0/varyBy/2",
    ]
    assert find_places("wrong-type", cache_rule(varyBy="host")) == ["/rules/0/varyBy"]
    assert find_places("wrong-type", cache_rule(varyBy=None)) == ["/rules/0/varyBy"]


def test_a_column_is_named_once() -> None:
    assert find_places("out-of-range", cache_rule(varyBy=["host", "userName", "host"])) == [
        "/rules/0/varyBy/2"
    ]


PER_USER_TABLE_SHARED = "per-user-table-shared"
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
    assert (finding.code, finding.path, finding.suggestion) == (
        PER_USER_TABLE_SHARED,
        ("rules", 1, "varyBy"),
        "userName",
    )
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
        if finding.code == PER_USER_TABLE_SHARED
    }
    known = {rule["id"]: rule for rule in numbered}
    for request in requests:
        names = [fold_case(name) for name in request["tables"]]
        if any(glob_matches(fold_case(pattern), name) for pattern in patterns for name in names):
            rule_id = match(read_rules(numbered), request).rule_id
            rule = known.get(rule_id or "", {"action": "none"})
            assert rule["action"] != "cache" or rule["varyBy"] == ["userName"] or rule_id in refused
