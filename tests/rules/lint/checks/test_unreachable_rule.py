"""``unreachable-rule``: rules behind a wider one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.lint.helpers import cache_rule, find_one, find_places, rule_with

CODE = "unreachable-rule"


WIDE = {"statementType": "SELECT"}
NARROW = {"statementType": "SELECT", "userName": "ann"}


def test_a_rule_behind_a_wider_one_is_reported() -> None:
    finding = find_one(CODE, rule_with(WIDE, id="wide"), rule_with(NARROW, id="narrow"))
    assert finding.path == ("rules", 1)
    assert finding.rule_id == "narrow"
    assert finding.message == "The rule wide comes before this rule and matches everything that it matches."


def test_the_message_names_a_rule_without_an_id_by_its_number() -> None:
    finding = find_one(CODE, cache_rule("a"), {"conditions": WIDE}, rule_with(NARROW))
    assert finding.message == (
        "Rule 2 in the list comes before this rule and matches everything that it matches."
    )


def test_a_rule_before_a_wider_one_is_not_reported() -> None:
    assert find_places(CODE, rule_with(NARROW), rule_with(WIDE)) == []


def test_a_rule_behind_one_that_matches_everything_is_reported() -> None:
    assert find_places(CODE, {"id": "all"}, cache_rule("a"), cache_rule("b")) == ["/rules/1", "/rules/2"]


def test_disabled_rules_are_ignored() -> None:
    assert find_places(CODE, rule_with(WIDE, enabled=False), rule_with(NARROW)) == []
    assert find_places(CODE, rule_with(WIDE), rule_with(NARROW, enabled=False)) == []


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ({"userName": {"in": ["ann", "bob"]}}, {"userName": "bob"}),
        ({"userName": {"in": ["ann", "bob", "eve"]}}, {"userName": {"in": ["eve", "bob"]}}),
        ({"any": [{"userName": "ann"}, {"userName": "bob"}]}, {"userName": "bob"}),
        (
            {"tables": {"containsAny": ["sales.*"]}},
            {"tables": {"containsAny": ["sales.orders", "sales.items"]}},
        ),
        ({"tables": {"containsAny": ["sales.*"]}}, {"tables": {"containsAny": ["sales.eu.orders"]}}),
        ({"tables": {"containsAny": ["sales.eu.*"]}}, {"tables": {"containsAny": ["sales.eu.orders"]}}),
        ({"tables": {"containsAny": ["sales.*"]}}, {"tables": {"containsAll": ["hr.people", "sales.items"]}}),
        ({"tables": {"containsAny": ["*.orders"]}}, {"tables": {"containsAny": ["sales.orders"]}}),
        ({"tables": {"containsAny": ["sales.*"]}}, {"tables": "sales.orders"}),
        (
            {"tables": {"containsAll": ["hr.people", "sales.*"]}},
            {"tables": {"containsAll": ["hr.people", "log.entries", "sales.orders"]}},
        ),
        (
            {"tables": {"containsAll": ["*.orders", "hr.*"]}},
            {"tables": {"containsAll": ["hr.people", "sales.orders"]}},
        ),
        ({"tables": {"in": ["sales.orders", "hr.people"]}}, {"tables": "hr.people"}),
        ({"userName": {"exists": False}}, {"userName": {"exists": False}, "isDDL": True}),
        ({"userName": {"ne": "bob"}}, {"userName": {"exists": False}, "isDDL": True}),
        ({"not": {"userName": {"startsWith": "a"}}}, {"userName": {"exists": False}, "isDDL": True}),
        ({"userName": {"ne": "bob"}}, {"userName": {"startsWith": "svc-"}}),
        ({"userName": {"contains": "svc"}}, {"userName": {"startsWith": "svc-"}}),
        ({"userName": {"contains": "svc"}}, {"userName": {"endsWith": "-svc"}}),
        ({"clientIp": {"cidr": "10.0.0.0/8"}}, {"clientIp": {"cidr": "10.1.0.0/16"}}),
        ({"userName": {"startsWith": "svc-"}}, {"userName": {"startsWith": "svc-etl"}}),
        ({"userName": {"regex": "^svc"}}, {"userName": "svc-etl"}),
        ({"userName": {"regex": "^svc"}}, {"userName": {"regex": "^svc"}, "isDDL": True}),
        ({"userName": {"ne": "bob"}}, {"userName": "ann"}),
        ({"userName": {"notIn": ["bob"]}}, {"userName": {"notIn": ["ann", "bob"]}}),
        ({"userName": {"exists": True}}, {"userName": {"contains": "x"}}),
        ({"tableCount": {"gte": 2}}, {"tableCount": {"gt": 4, "lt": 9}}),
        ({"any": [{"isDDL": True}, {"userName": {"startsWith": "a"}}]}, {"userName": "ann", "host": "h"}),
        ({"not": {"host": {"regex": "x"}}}, {"all": [{"not": {"host": {"regex": "x"}}}, {"isDDL": True}]}),
        ({"userName": {"eq": "ANN", "ignoreCase": True}}, {"userName": "Ann"}),
    ],
)
def test_wider_conditions_of_all_kinds_are_found(wide: dict[str, Any], narrow: dict[str, Any]) -> None:
    # Other rules in between have some terms in common with the two rules.
    between = [
        cache_rule(f"between-{n}", conditions={"serverHostname": f"h{n}", "hasParameters": bool(n % 2)})
        for n in range(9)
    ]
    assert find_places(CODE, rule_with(wide, id="w"), *between, rule_with(narrow, id="n")) == ["/rules/10"]
    assert find_places(CODE, rule_with(narrow, id="n"), *between, rule_with(wide, id="w")) == []


def test_a_rule_that_only_invalidates_is_reported_only_behind_a_deny_rule() -> None:
    target = cache_rule("t")
    narrow = rule_with(NARROW, id="i", invalidateRules=["t"])
    assert find_places(CODE, target, rule_with(WIDE, id="w", action="bypass"), narrow) == []
    assert find_places(CODE, target, rule_with(WIDE, id="w", action="deny"), narrow) == ["/rules/2"]


def test_the_message_says_that_invalidations_still_fire() -> None:
    narrow = rule_with(NARROW, id="n", action="bypass", invalidateRules=["t"])
    finding = find_one(CODE, cache_rule("t"), rule_with(WIDE, id="w"), narrow)
    assert finding.message.endswith("; its invalidations still fire.")
    finding = find_one(CODE, cache_rule("t"), rule_with(WIDE, id="w", action="deny"), narrow)
    assert finding.message.endswith(" matches everything that it matches.")


def test_a_rule_that_never_matches_is_not_reported() -> None:
    assert find_places(CODE, {"id": "all"}, rule_with({"any": []})) == []
