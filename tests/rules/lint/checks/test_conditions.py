"""The form of conditions: keys, operators, patterns, networks and depth."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.lint.helpers import cache_rule, find_all, find_one, find_places, nest, rule_with

UNKNOWN_CONDITION_KEY = "unknown-condition-key"


@pytest.mark.parametrize(
    ("written", "nearest"),
    [
        ("statmentType", "statementType"),
        ("USERNAME", "userName"),
        ("table", "tables"),
        ("client_ip", "clientIp"),
        ("responseSize", None),
        ("matchedRule", None),
        ("", None),
    ],
)
def test_the_most_similar_key_is_suggested(written: str, nearest: str | None) -> None:
    finding = find_one(UNKNOWN_CONDITION_KEY, rule_with({written: "x"}))
    assert finding.path == ("rules", 0, "conditions", written)
    assert finding.suggestion == nearest


def test_keys_are_checked_in_all_conditions() -> None:
    conditions = {"all": [{"usrName": "a"}], "not": {"any": [{}, {"or": []}]}}
    assert find_places(UNKNOWN_CONDITION_KEY, rule_with(conditions)) == [
        "/rules/0/conditions/all/0/usrName",
        "/rules/0/conditions/not/any/1/or",
    ]


def test_the_value_of_an_unknown_key_is_not_checked() -> None:
    assert find_places(UNKNOWN_CONDITION_KEY, rule_with({"xyzzy": {"plugh": {"plover": 1}}})) == [
        "/rules/0/conditions/xyzzy"
    ]


def test_keys_are_checked_at_the_deepest_level_that_is_allowed() -> None:
    conditions: dict[str, Any] = {"usrName": "a"}
    for _ in range(8):
        conditions = {"not": conditions}
    place = "/rules/0/conditions" + "/not" * 8
    assert find_places(UNKNOWN_CONDITION_KEY, rule_with(conditions)) == [f"{place}/usrName"]
    assert find_places(UNKNOWN_CONDITION_KEY, rule_with({"not": conditions})) == []


def test_the_message_names_the_suggestion_or_the_list() -> None:
    assert find_one(UNKNOWN_CONDITION_KEY, rule_with({"usrName": "a"})).message == (
        'There is no condition key "usrName"; did you mean userName?'
    )
    assert find_one(UNKNOWN_CONDITION_KEY, rule_with({"xyzzy": "a"})).message == (
        'There is no condition key "xyzzy"; docs/rules.md lists them.'
    )


UNKNOWN_OPERATOR = "unknown-operator"


@pytest.mark.parametrize(
    ("written", "nearest"),
    [
        ("equals", "eq"),
        ("==", "eq"),
        ("!=", "ne"),
        (">=", "gte"),
        ("startswith", "startsWith"),
        ("contain", "contains"),
        ("not_in", "notIn"),
        ("LIKE", "contains"),
        ("matches", "regex"),
        ("ignorecase", "ignoreCase"),
        ("zzz", None),
    ],
)
def test_the_most_similar_operator_is_suggested(written: str, nearest: str | None) -> None:
    finding = find_one(UNKNOWN_OPERATOR, rule_with({"userName": {written: "x"}}))
    assert finding.path == ("rules", 0, "conditions", "userName", written)
    assert finding.suggestion == nearest


def test_every_unknown_operator_is_reported() -> None:
    assert find_places(UNKNOWN_OPERATOR, rule_with({"host": {"a": 1, "eq": "x", "b": 2}})) == [
        "/rules/0/conditions/host/a",
        "/rules/0/conditions/host/b",
    ]


def test_the_message_names_the_suggestion_or_all_operators() -> None:
    assert find_one(UNKNOWN_OPERATOR, rule_with({"host": {"equals": "x"}})).message == (
        'There is no operator "equals"; did you mean eq?'
    )
    assert find_one(UNKNOWN_OPERATOR, rule_with({"host": {"zzz": "x"}})).message == (
        'There is no operator "zzz"; the operators are eq, ne, in, notIn, exists, contains, startsWith, '
        "endsWith, regex, gt, gte, lt, lte, containsAny, containsAll, cidr, ignoreCase."
    )


OPERATOR_TYPE_MISMATCH = "operator-type-mismatch"


@pytest.mark.parametrize(
    ("key", "operator", "operand"),
    [
        ("tableCount", "contains", "1"),
        ("tableCount", "regex", "1"),
        ("isDDL", "gt", 1),
        ("isDDL", "startsWith", "t"),
        ("userName", "gte", 1),
        ("userName", "containsAny", ["a"]),
        ("userName", "cidr", "10.0.0.0/8"),
        ("tables", "contains", "a"),
        ("tables", "lt", 1),
        ("clientIp", "containsAll", ["10.0.0.1"]),
        ("tableCount", "ignoreCase", True),
        ("isDDL", "ignoreCase", False),
    ],
)
def test_an_operator_that_does_not_fit_is_reported(key: str, operator: str, operand: object) -> None:
    assert find_places(OPERATOR_TYPE_MISMATCH, rule_with({key: {operator: operand}})) == [
        f"/rules/0/conditions/{key}/{operator}"
    ]


@pytest.mark.parametrize("operator", ["eq", "contains", "startsWith", "endsWith", "regex"])
def test_text_operators_fit_an_address(operator: str) -> None:
    assert find_places(OPERATOR_TYPE_MISMATCH, rule_with({"clientIp": {operator: "10."}})) == []


def test_the_message_names_the_operators_that_fit() -> None:
    assert find_one(OPERATOR_TYPE_MISMATCH, rule_with({"userName": {"gte": 1}})).message == (
        "gte does not fit userName, which is text: "
        "use eq, ne, in, notIn, exists, contains, startsWith, endsWith, regex."
    )
    assert find_one(OPERATOR_TYPE_MISMATCH, rule_with({"isDDL": {"gt": 1}})).message == (
        "gt does not fit isDDL, which is a boolean: use eq, ne, in, notIn, exists."
    )


INVALID_REGEX = "invalid-regex"


@pytest.mark.parametrize(
    "pattern", ["(", "[a", "a**", "(?=a)", r"\1", "(?<name>a)", "((a{100}){100}){100}", r"(\pL{100}){10}"]
)
def test_a_pattern_that_does_not_compile_is_reported(pattern: str) -> None:
    finding = find_one(INVALID_REGEX, rule_with({"standardizedSql": {"regex": pattern}}))
    assert finding.path == ("rules", 0, "conditions", "standardizedSql", "regex")
    assert finding.message.startswith("The pattern does not compile as RE2: ")


@pytest.mark.parametrize("pattern", ["", "a|b", "(?i)select", "(?P<name>a)", "^(a+)+$"])
def test_a_pattern_that_compiles_is_not_reported(pattern: str) -> None:
    assert find_places(INVALID_REGEX, rule_with({"standardizedSql": {"regex": pattern}})) == []


def test_a_pattern_is_compiled_with_the_ignore_case_of_its_condition() -> None:
    # If case is ignored, the class of capital letters compiles to a smaller program.
    conditions = {
        "userName": {"regex": r"\p{Lu}{100}", "ignoreCase": True},
        "host": {"regex": r"\p{Lu}{100}"},
    }
    assert find_places(INVALID_REGEX, rule_with(conditions)) == ["/rules/0/conditions/host/regex"]


def test_the_message_says_what_is_wrong() -> None:
    message = find_one(INVALID_REGEX, rule_with({"host": {"regex": "(a"}})).message
    assert message == "The pattern does not compile as RE2: missing ): (a."


def test_a_long_or_misplaced_pattern_is_not_compiled() -> None:
    longest = "a" * 1_999 + "("
    assert find_places(INVALID_REGEX, rule_with({"host": {"regex": longest}})) == [
        "/rules/0/conditions/host/regex"
    ]
    assert find_places(INVALID_REGEX, rule_with({"host": {"regex": f"a{longest}"}})) == []
    assert find_places(INVALID_REGEX, rule_with({"tableCount": {"regex": "("}})) == []


def test_patterns_that_do_not_compile_count_towards_the_limit() -> None:
    rules = [cache_rule(f"r{n}", conditions={"host": {"regex": f"({n}"}}) for n in range(102)]
    used_up = [finding.rule_id for finding in find_all(*rules) if "have used up" in finding.message]
    assert used_up == ["r101"]


def test_a_pattern_is_compiled_once() -> None:
    rules = [cache_rule(f"r{n}", conditions={"host": {"regex": "("}}) for n in range(102)]
    assert {finding.message for finding in find_all(*rules) if finding.code == INVALID_REGEX} == {
        "The pattern does not compile as RE2: missing ): (."
    }


def test_the_size_of_all_patterns_together_is_limited() -> None:
    rules = [cache_rule(f"r{n}", conditions={"host": {"regex": rf"\pL{{40}}{n}"}}) for n in range(200)]
    findings = [finding for finding in find_all(*rules) if finding.code == INVALID_REGEX]
    assert findings[0].rule_id != "r0"
    assert findings[-1].rule_id == "r199"
    assert findings[-1].message.endswith("the patterns before it have used up the limit of one ruleset.")


INVALID_CIDR = "invalid-cidr"


@pytest.mark.parametrize(
    "network", ["", "10.0.0.0/33", "10.0.0", "300.0.0.0/8", "::/129", "localhost", "fe80::1%eth0"]
)
def test_an_invalid_network_is_reported(network: str) -> None:
    assert find_places(INVALID_CIDR, rule_with({"clientIp": {"cidr": network}})) == [
        "/rules/0/conditions/clientIp/cidr"
    ]


def test_bits_after_the_prefix_are_reported_with_the_network() -> None:
    finding = find_one(INVALID_CIDR, rule_with({"clientIp": {"cidr": "10.1.2.3/8"}}))
    assert finding.suggestion == "10.0.0.0/8"
    assert finding.message == (
        '"10.1.2.3/8" is not a network: it has bits set to the right of its prefix;'
        " the network is 10.0.0.0/8."
    )


def test_the_message_names_the_text_once() -> None:
    assert find_one(INVALID_CIDR, rule_with({"clientIp": {"cidr": "localhost"}})).message == (
        '"localhost" is not a network: it does not appear to be an IPv4 or IPv6 network.'
    )


def test_every_element_is_checked() -> None:
    conditions = {"clientIp": {"cidr": ["10.0.0.0/8", "x", "2001:db8::/32", "y"]}}
    assert find_places(INVALID_CIDR, rule_with(conditions)) == [
        "/rules/0/conditions/clientIp/cidr/1",
        "/rules/0/conditions/clientIp/cidr/3",
    ]


@pytest.mark.parametrize("network", ["10.0.0.0/8", "10.0.0.1", "2001:db8::/32", "0.0.0.0/0"])
def test_valid_networks_are_not_reported(network: str) -> None:
    assert find_places(INVALID_CIDR, rule_with({"clientIp": {"cidr": network}})) == []


CONDITIONS_TOO_DEEP = "conditions-too-deep"


def test_eight_levels_are_allowed() -> None:
    assert find_places(CONDITIONS_TOO_DEEP, rule_with(nest(8))) == []


def test_the_ninth_level_is_reported() -> None:
    assert find_places(CONDITIONS_TOO_DEEP, rule_with(nest(9))) == ["/rules/0/conditions" + "/not" * 9]


def test_very_deep_nesting_is_reported_once() -> None:
    assert find_places(CONDITIONS_TOO_DEEP, rule_with(nest(100_000))) == ["/rules/0/conditions" + "/not" * 9]


def test_all_and_any_count_as_levels() -> None:
    conditions = {"all": [{"any": [nest(7)]}]}
    assert find_places(CONDITIONS_TOO_DEEP, rule_with(conditions)) == [
        "/rules/0/conditions/all/0/any/0" + "/not" * 7
    ]
