"""Warnings about what conditions select, or do not."""

from __future__ import annotations

from time import thread_time
from typing import Any

import pytest

from rules.json_text import join_pointer
from rules.lint import lint_ruleset
from rules.tables.warehouse import WarehouseTables
from tests.rules.lint.helpers import cache_rule, find_codes, find_one, find_places, rule_with

MATCHES_EVERYTHING = "matches-everything"


def test_a_rule_without_conditions_is_reported() -> None:
    assert find_codes({"id": "a", "varyBy": []}) == [
        *("shares-everything", MATCHES_EVERYTHING, "caches-non-deterministic", "caches-writes")
    ]
    assert find_codes({"id": "a", "action": "bypass"}) == [MATCHES_EVERYTHING]
    assert find_places(MATCHES_EVERYTHING, {"id": "a"}) == ["/rules/0"]


@pytest.mark.parametrize(
    "conditions", [{}, {"all": [{}]}, {"not": {"any": []}}, {"any": [{}, {"isDDL": True}]}]
)
def test_conditions_that_always_match_are_reported(conditions: dict[str, Any]) -> None:
    assert find_places(MATCHES_EVERYTHING, rule_with(conditions)) == ["/rules/0/conditions"]


def test_a_deny_rule_has_another_finding() -> None:
    assert find_places(MATCHES_EVERYTHING, rule_with({}, action="deny")) == []


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
    assert find_places(MATCHES_EVERYTHING, rule_with(conditions)) == ["/rules/0/conditions"]
    assert find_places(MATCHES_EVERYTHING, rule_with(conditions, action="deny")) == []
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
def test_conditions_that_exclude_something_are_not_reported(conditions: dict[str, Any]) -> None:
    assert find_places(MATCHES_EVERYTHING, rule_with(conditions)) == []
    assert find_places("unconditional-deny", rule_with(conditions, action="deny")) == []


TABLE_SPELLED_OTHERWISE = "table-spelled-otherwise"
QUOTED = '"hr"."people"'
READS: dict[str, Any] = {"id": "reads", "conditions": {"isReadOnly": True}, "varyBy": ["userName"]}


def tables(*names: str, operator: str = "containsAny", **more: Any) -> dict[str, Any]:
    return {"tables": {operator: list(names), **more}}


def bypass(conditions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "first", "action": "bypass", "conditions": conditions} | fields


def cache(conditions: dict[str, Any]) -> dict[str, Any]:
    return READS | {"conditions": conditions}


def find(*rules: dict[str, Any], log: tuple[str, ...] = (QUOTED,)) -> list[tuple[str, str]]:
    result = lint_ruleset({"rules": list(rules)}, tables=WarehouseTables(logged=log))
    assert result.valid
    return [
        (join_pointer(warning.path), warning.message)
        for warning in result.warnings
        if warning.code == TABLE_SPELLED_OTHERWISE
    ]


def places(*rules: dict[str, Any], log: tuple[str, ...] = (QUOTED,)) -> list[str]:
    return [place for place, _ in find(*rules, log=log)]


@pytest.mark.parametrize("action", ["bypass", "deny"])
@pytest.mark.parametrize(
    "log", [QUOTED, "`hr`.`people`", "prod.hr.people", "people", "[HR].people", "hr . people", "hr.People"]
)
def test_a_rule_that_keeps_a_table_out_misses_a_spelling(action: str, log: str) -> None:
    first = bypass(tables("hr.people"), action=action)
    assert places(first, READS, log=("hr.people", log)) == ["/rules/0/conditions/tables"]
    assert places(first, READS, log=("hr.people", "sales.people", "hr.people2")) == []


@pytest.mark.parametrize(
    "conditions",
    [
        {"not": tables("hr.people")},
        {"not": tables("hr.*")},
        {"not": tables("hr.people", operator="containsAll")},
        {"not": {"tables": "hr.people"}},
        {"not": {"not": {"tables": {"ne": "hr.people"}}}},
        {"tables": {"ne": "hr.people"}},
        tables("hr.people", "x", operator="notIn", ignoreCase=True),
        {"any": [{"not": tables("hr.people")}, {"isDDL": True}]},
    ],
)
def test_a_negative_condition_misses_a_spelling(conditions: dict[str, Any]) -> None:
    assert len(places(cache(conditions))) == 1
    assert places(cache(conditions), log=("hr.people",)) == []
    assert places(cache(conditions) | {"enabled": False}) == []
    # A rule with a negative condition that keeps tables out, misses one too.
    assert len(places(bypass(conditions))) == 1


@pytest.mark.parametrize(
    "rules",
    [
        # Conditions of cache rules that say what the rule is for.
        [cache(tables("hr.people"))],
        [cache({"not": {"tables": {"ne": "hr.people"}}})],
        # No later rule caches the spelling.
        [bypass(tables("hr.people"))],
        [READS, bypass(tables("hr.people"))],
        [bypass(tables("hr.people")), READS | {"enabled": False}],
        [bypass(tables("hr.people"), enabled=False), READS],
        [bypass(tables("hr.people")), cache(tables("sales.orders", operator="in"))],
        [bypass(tables("hr.people")), cache({"not": tables("*people*", ignoreCase=True)})],
        # Another condition or rule matches it.
        [bypass(tables("hr.people", QUOTED, ignoreCase=True)), READS],
        [bypass({"any": [tables("hr.people"), tables(QUOTED, ignoreCase=True)]}), READS],
        [bypass(tables("hr.people")), bypass(tables(QUOTED, ignoreCase=True), id="second"), READS],
        [cache({"all": [{"not": tables("hr.people")}, {"not": tables(QUOTED, ignoreCase=True)}]})],
        [bypass({"tables": {"exists": True}}), READS],
    ],
)
def test_where_nothing_is_missed_there_is_no_warning(rules: list[dict[str, Any]]) -> None:
    assert places(*rules) == []


def test_a_doubt_about_a_doubt_is_none() -> None:
    """``hr.*`` may be ``orders``, and ``orders`` may be ``sales.orders``. Conditions compare text."""
    assert places(bypass(tables("hr.*")), cache({"tables": "sales.orders"}), log=("orders",)) == []
    assert places(bypass(tables("hr.*")), READS, log=("orders",)) == ["/rules/0/conditions/tables"]


def test_the_message_names_the_table_the_spelling_and_the_cure() -> None:
    [(_, message)] = find(bypass(tables("hr.people")), READS, log=(QUOTED, "people"))
    assert message == (
        'The log of the last 28 days names "\\"hr\\".\\"people\\"", which is "hr.people"; names "people", '
        'which may be "hr.people". Conditions compare text, so this one does not match. '
        'Add "\\"hr\\".\\"people\\"", "people" to its names.'
    )
    [(_, message)] = find(cache({"tables": {"ne": "hr.people"}}), log=("HR.people",))
    assert message.endswith('Write "ignoreCase": true beside the operator.')
    [(_, message)] = find(cache({"tables": {"ne": "hr.people"}}))
    assert message.endswith('Add "\\"hr\\".\\"people\\"" to its names, with the operator notIn.')
    [(_, message)] = find(bypass(tables("hr.people")), READS, log=tuple(f"p{n}.hr.people" for n in range(9)))
    assert message.count("which may be") == 3
    assert "; and more such names. " in message


def test_without_a_log_there_is_no_warning() -> None:
    assert places(bypass(tables("hr.people")), READS, log=()) == []


@pytest.mark.slow
def test_many_names_and_rules_take_a_limited_time() -> None:
    log = tuple(f"{'x' * 20}{number}" for number in range(1_000))
    rules = [bypass(tables(f"hr{number}.*"), id=f"b{number}") for number in range(3_000)]
    started = thread_time()
    result = lint_ruleset({"rules": [*rules, READS]}, tables=WarehouseTables(logged=log))
    assert thread_time() - started < 2
    assert "warnings-incomplete" in {warning.code for warning in result.warnings}


UNREACHABLE_RULE = "unreachable-rule"

WIDE = {"statementType": "SELECT"}
NARROW = {"statementType": "SELECT", "userName": "ann"}


def test_a_rule_behind_a_wider_one_is_reported() -> None:
    finding = find_one(UNREACHABLE_RULE, rule_with(WIDE, id="wide"), rule_with(NARROW, id="narrow"))
    assert finding.path == ("rules", 1)
    assert finding.rule_id == "narrow"
    assert finding.message == "The rule wide comes before this rule and matches everything that it matches."


def test_a_wider_rule_without_an_id_is_named_by_its_number() -> None:
    finding = find_one(UNREACHABLE_RULE, cache_rule("a"), {"conditions": WIDE}, rule_with(NARROW))
    assert finding.message == (
        "Rule 2 in the list comes before this rule and matches everything that it matches."
    )


def test_a_rule_before_a_wider_one_is_not_reported() -> None:
    assert find_places(UNREACHABLE_RULE, rule_with(NARROW), rule_with(WIDE)) == []


def test_a_rule_behind_one_that_matches_everything_is_reported() -> None:
    assert find_places(UNREACHABLE_RULE, {"id": "all"}, cache_rule("a"), cache_rule("b")) == [
        "/rules/1",
        "/rules/2",
    ]


def test_disabled_rules_make_none_unreachable() -> None:
    assert find_places(UNREACHABLE_RULE, rule_with(WIDE, enabled=False), rule_with(NARROW)) == []
    assert find_places(UNREACHABLE_RULE, rule_with(WIDE), rule_with(NARROW, enabled=False)) == []


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
    assert find_places(UNREACHABLE_RULE, rule_with(wide, id="w"), *between, rule_with(narrow, id="n")) == [
        "/rules/10"
    ]
    assert find_places(UNREACHABLE_RULE, rule_with(narrow, id="n"), *between, rule_with(wide, id="w")) == []


def test_a_rule_that_only_invalidates_is_reported_only_behind_a_deny_rule() -> None:
    target = cache_rule("t")
    narrow = rule_with(NARROW, id="i", invalidateRules=["t"])
    assert find_places(UNREACHABLE_RULE, target, rule_with(WIDE, id="w", action="bypass"), narrow) == []
    assert find_places(UNREACHABLE_RULE, target, rule_with(WIDE, id="w", action="deny"), narrow) == [
        "/rules/2"
    ]


def test_the_message_says_that_invalidations_still_fire() -> None:
    narrow = rule_with(NARROW, id="n", action="bypass", invalidateRules=["t"])
    finding = find_one(UNREACHABLE_RULE, cache_rule("t"), rule_with(WIDE, id="w"), narrow)
    assert finding.message.endswith("; its invalidations still fire.")
    finding = find_one(UNREACHABLE_RULE, cache_rule("t"), rule_with(WIDE, id="w", action="deny"), narrow)
    assert finding.message.endswith(" matches everything that it matches.")


def test_a_rule_that_never_matches_is_not_reported() -> None:
    assert find_places(UNREACHABLE_RULE, {"id": "all"}, rule_with({"any": []})) == []


DUPLICATE_CONDITIONS = "duplicate-conditions"


def test_equal_conditions_are_reported() -> None:
    finding = find_one(
        DUPLICATE_CONDITIONS,
        cache_rule("a", conditions={"host": "h"}),
        cache_rule("b", conditions={"host": "h"}),
    )
    assert finding.path == ("rules", 1, "conditions")
    assert finding.message == "The rule a has conditions with the same meaning."


def test_conditions_with_the_same_meaning_are_reported() -> None:
    first = {"userName": {"in": ["b", "a"]}, "isDDL": False}
    second = {"all": [{"isDDL": {"eq": False}}, {"any": [{"userName": "a"}, {"userName": "b"}]}]}
    assert find_places(DUPLICATE_CONDITIONS, rule_with(first), rule_with(second)) == ["/rules/1/conditions"]


def test_an_equal_rule_without_an_id_is_named_by_its_number() -> None:
    finding = find_one(
        DUPLICATE_CONDITIONS, cache_rule("a"), {"conditions": {"host": "h"}}, rule_with({"host": "h"})
    )
    assert finding.message == "The rule number 2 in the list has conditions with the same meaning."


def test_ignored_rules_do_not_hide_duplicates() -> None:
    never, disabled = rule_with({"any": []}), rule_with({"host": "h"}, enabled=False)
    rules = (never, disabled, rule_with({"host": "h"}), rule_with({"host": "h"}))
    assert find_places(DUPLICATE_CONDITIONS, *rules) == ["/rules/3/conditions"]


def test_disabled_rules_are_no_duplicates() -> None:
    assert (
        find_places(DUPLICATE_CONDITIONS, rule_with({"host": "h"}, enabled=False), rule_with({"host": "h"}))
        == []
    )


def test_different_conditions_are_not_reported() -> None:
    assert find_places(DUPLICATE_CONDITIONS, rule_with({"host": "h"}), rule_with({"host": "H"})) == []


CONTRADICTORY_CONDITIONS = "contradictory-conditions"


@pytest.mark.parametrize(
    "conditions",
    [
        {"any": []},
        {"userName": {"in": []}},
        {"userName": {"eq": "ann", "startsWith": "b"}},
        {"userName": {"exists": False, "regex": "a"}},
        {"all": [{"userName": "ann"}, {"userName": "bob"}]},
        {"isDDL": True, "not": {"isDDL": True}},
        {"tableCount": {"gt": 1, "lt": 2}},
        {"clientIp": {"eq": "10.0.0.1", "cidr": "192.168.0.0/16"}},
        {"any": [{"host": {"eq": "a", "ne": "a"}}, {"not": {}}]},
    ],
)
def test_conditions_that_never_match_are_reported(conditions: dict[str, Any]) -> None:
    assert find_places(CONTRADICTORY_CONDITIONS, rule_with(conditions)) == ["/rules/0/conditions"]


@pytest.mark.parametrize(
    "conditions",
    [
        {"userName": {"eq": "ann", "startsWith": "a"}},
        {"tableCount": {"gte": 2, "lte": 2}},
        {"userName": {"exists": False, "ne": "ann"}},
        {"tables": {"containsAll": ["a.b", "c.d"]}},
    ],
)
def test_conditions_that_can_match_are_not_reported(conditions: dict[str, Any]) -> None:
    assert find_places(CONTRADICTORY_CONDITIONS, rule_with(conditions)) == []


SPOOFABLE_CONDITION = "spoofable-condition"


@pytest.mark.parametrize("key", ["userAgent", "host", "origin", "referer"])
def test_a_header_in_a_deny_rule_is_reported(key: str) -> None:
    conditions = {"isDDL": True, "not": {key: {"startsWith": "x", "ignoreCase": True, "endsWith": "y"}}}
    assert find_places(SPOOFABLE_CONDITION, rule_with(conditions, action="deny")) == [
        f"/rules/0/conditions/not/{key}"
    ]


@pytest.mark.parametrize("key", ["clientIp", "userName", "standardizedSql", "serverHostname"])
def test_values_that_the_gateway_determines_are_not_reported(key: str) -> None:
    assert find_places(SPOOFABLE_CONDITION, rule_with({key: "x"}, action="deny")) == []


@pytest.mark.parametrize("action", ["cache", "bypass"])
def test_other_actions_are_not_reported(action: str) -> None:
    assert find_places(SPOOFABLE_CONDITION, rule_with({"userAgent": "x"}, action=action)) == []


CACHES_NON_DETERMINISTIC = "caches-non-deterministic"

KEY = "hasNonDeterministicFunctions"


@pytest.mark.parametrize(
    ("conditions", "place"),
    [
        ({KEY: True}, f"/{KEY}"),
        ({KEY: {"ne": False}}, f"/{KEY}"),
        ({"any": [{"isDDL": False}, {KEY: True}]}, f"/any/1/{KEY}"),
        ({"not": {KEY: False}}, f"/not/{KEY}"),
    ],
)
def test_conditions_that_select_such_statements_are_reported(conditions: dict[str, Any], place: str) -> None:
    assert find_places(CACHES_NON_DETERMINISTIC, rule_with(conditions)) == [f"/rules/0/conditions{place}"]


@pytest.mark.parametrize(
    "conditions", [{KEY: False}, {KEY: {"exists": True}}, {"not": {KEY: True}}, {"statementType": "SELECT"}]
)
def test_conditions_for_deterministic_statements_are_not_reported(conditions: dict[str, Any]) -> None:
    assert find_places(CACHES_NON_DETERMINISTIC, rule_with(conditions)) == []


@pytest.mark.parametrize(
    ("conditions", "word"),
    [
        ({"standardizedSql": "SELECT count(*) FROM t WHERE day = CURRENT_DATE"}, "CURRENT_DATE"),
        ({"standardizedSql": {"in": ["SELECT 1", "SELECT now()"]}}, "now()"),
        ({"standardizedSql": {"contains": "getdate()"}}, "getdate()"),
    ],
)
def test_conditions_that_select_a_word_of_the_time_name_it(conditions: dict[str, Any], word: str) -> None:
    finding = find_one(CACHES_NON_DETERMINISTIC, rule_with(conditions))
    assert finding.path == ("rules", 0, "conditions", "standardizedSql")
    assert f"The result of {word} depends on the time" in finding.message
    assert find_places(CACHES_NON_DETERMINISTIC, rule_with(conditions, action="bypass")) == []
    assert find_places(CACHES_NON_DETERMINISTIC, rule_with({"not": conditions})) == []


def test_a_rule_that_matches_everything_matches_such_statements() -> None:
    assert find_places(CACHES_NON_DETERMINISTIC, rule_with({})) == ["/rules/0/conditions"]
    assert find_one(CACHES_NON_DETERMINISTIC, rule_with({})).hurts


def test_a_bypass_rule_may_select_what_is_not_deterministic() -> None:
    assert find_places(CACHES_NON_DETERMINISTIC, rule_with({KEY: True}, action="bypass")) == []


CACHES_WRITES = "caches-writes"


@pytest.mark.parametrize(
    ("conditions", "place"),
    [
        ({"isDataChange": True}, "/isDataChange"),
        ({"isDDL": True}, "/isDDL"),
        ({"isReadOnly": False}, "/isReadOnly"),
        ({"not": {"isReadOnly": True}}, "/not/isReadOnly"),
        ({"statementType": "INSERT"}, "/statementType"),
        ({"statementType": {"in": ["SELECT", "merge"]}}, "/statementType"),
    ],
)
def test_conditions_that_select_writes_are_reported(conditions: dict[str, Any], place: str) -> None:
    assert find_places(CACHES_WRITES, rule_with(conditions)) == [f"/rules/0/conditions{place}"]


@pytest.mark.parametrize(
    "statement_type",
    [
        *("INSERT", "UPDATE", "DELETE", "MERGE", "UPSERT", "REPLACE", "TRUNCATE", "COPY"),
        *("CREATE", "ALTER", "DROP", "GRANT", "REVOKE"),
    ],
)
def test_every_type_of_statement_that_writes(statement_type: str) -> None:
    rule = rule_with({"statementType": statement_type})
    assert find_places(CACHES_WRITES, rule) == ["/rules/0/conditions/statementType"]


@pytest.mark.parametrize(
    "conditions",
    [
        {"isReadOnly": True},
        {"statementType": "SELECT"},
        {"not": {"statementType": "INSERT"}},
        {"isDDL": False},
    ],
)
def test_conditions_for_statements_that_read_are_not_reported(conditions: dict[str, Any]) -> None:
    assert find_places(CACHES_WRITES, rule_with(conditions)) == []


def test_a_bypass_rule_may_select_writes() -> None:
    assert find_places(CACHES_WRITES, rule_with({"isDataChange": True}, action="bypass")) == []


@pytest.mark.parametrize("conditions", [{}, {"userName": {"contains": ""}}, {"any": [{}, {"isDDL": True}]}])
def test_a_rule_that_matches_everything_matches_writes(conditions: dict[str, Any]) -> None:
    assert find_places(CACHES_WRITES, rule_with(conditions)) == ["/rules/0/conditions"]
    assert find_one(CACHES_WRITES, rule_with(conditions)).hurts
    assert find_places(CACHES_WRITES, rule_with(conditions, action="bypass")) == []


UNKNOWN_VALUE = "unknown-value"


@pytest.mark.parametrize(
    ("conditions", "place"),
    [
        ({"statementType": "select"}, "statementType"),
        ({"statementType": {"eq": "Select"}}, "statementType/eq"),
        ({"statementType": {"in": ["SELECT", "insert"]}}, "statementType/in/1"),
        ({"statementType": {"ne": "SELCET"}}, "statementType/ne"),
        ({"adapterType": {"notIn": ["Snowflake"]}}, "adapterType/notIn/0"),
        ({"adapterType": "bigquery"}, "adapterType"),
        ({"adapterType": {"eq": "bigquery", "ignoreCase": True}}, "adapterType/eq"),
        ({"cacheOverride": "no-cache"}, "cacheOverride"),
        ({"operationType": "execute_statement"}, "operationType"),
        ({"not": {"operationType": "ExecuteStatement"}}, "not/operationType"),
        ({"statementType": {"startsWith": "sel"}}, "statementType/startsWith"),
        ({"operationType": {"contains": "-"}}, "operationType/contains"),
        ({"adapterType": {"endsWith": "SQL"}}, "adapterType/endsWith"),
        ({"cacheOverride": {"contains": "never", "ignoreCase": True}}, "cacheOverride/contains"),
    ],
)
def test_a_value_that_the_log_never_has_is_reported(conditions: dict[str, Any], place: str) -> None:
    assert find_places(UNKNOWN_VALUE, rule_with(conditions)) == [f"/rules/0/conditions/{place}"]


@pytest.mark.parametrize(
    "conditions",
    [
        {"statementType": "SELECT"},
        {"statementType": {"eq": "select", "ignoreCase": True}},
        {"statementType": {"startsWith": "sel", "ignoreCase": True}},
        {"statementType": {"endsWith": " TABLE"}},
        {"operationType": {"contains": "_"}},
        {"adapterType": {"endsWith": "SQL", "ignoreCase": True}},
        {"cacheOverride": {"contains": "cache"}},
        {"userName": {"startsWith": "sel"}},
        {"statementType": {"in": ["OTHER", "CREATE TABLE"]}},
        {"adapterType": {"in": ["databricks", "snowflake", "postgresql"]}},
        {"cacheOverride": {"in": ["cache", "nocache"]}},
        {"operationType": {"in": ["EXECUTE_STATEMENT", "SYNC"]}},
        {"userName": "select"},
        {"statementType": 5},
        {"statementType": {"in": "select"}},
    ],
)
def test_other_values_are_not_reported(conditions: dict[str, Any]) -> None:
    assert find_places(UNKNOWN_VALUE, rule_with(conditions)) == []
