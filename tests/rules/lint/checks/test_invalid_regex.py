"""``invalid-regex``: patterns must be RE2."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import cache_rule, find_all, find_one, find_places, rule_with

CODE = "invalid-regex"


@pytest.mark.parametrize(
    "pattern", ["(", "[a", "a**", "(?=a)", r"\1", "(?<name>a)", "((a{100}){100}){100}", r"(\pL{100}){10}"]
)
def test_a_pattern_that_does_not_compile_is_reported(pattern: str) -> None:
    finding = find_one(CODE, rule_with({"standardizedSql": {"regex": pattern}}))
    assert finding.path == ("rules", 0, "conditions", "standardizedSql", "regex")
    assert finding.message.startswith("The pattern does not compile as RE2: ")


@pytest.mark.parametrize("pattern", ["", "a|b", "(?i)select", "(?P<name>a)", "^(a+)+$"])
def test_a_pattern_that_compiles_is_not_reported(pattern: str) -> None:
    assert find_places(CODE, rule_with({"standardizedSql": {"regex": pattern}})) == []


def test_a_pattern_is_compiled_with_the_ignore_case_of_its_condition() -> None:
    # If case is ignored, the class of capital letters compiles to a smaller program.
    conditions = {
        "userName": {"regex": r"\p{Lu}{100}", "ignoreCase": True},
        "host": {"regex": r"\p{Lu}{100}"},
    }
    assert find_places(CODE, rule_with(conditions)) == ["/rules/0/conditions/host/regex"]


def test_the_message_says_what_is_wrong() -> None:
    message = find_one(CODE, rule_with({"host": {"regex": "(a"}})).message
    assert message == "The pattern does not compile as RE2: missing ): (a."


def test_a_long_or_misplaced_pattern_is_not_compiled() -> None:
    longest = "a" * 1_999 + "("
    assert find_places(CODE, rule_with({"host": {"regex": longest}})) == ["/rules/0/conditions/host/regex"]
    assert find_places(CODE, rule_with({"host": {"regex": f"a{longest}"}})) == []
    assert find_places(CODE, rule_with({"tableCount": {"regex": "("}})) == []


def test_patterns_that_do_not_compile_count_towards_the_limit() -> None:
    rules = [cache_rule(f"r{n}", conditions={"host": {"regex": f"({n}"}}) for n in range(102)]
    used_up = [finding.rule_id for finding in find_all(*rules) if "have used up" in finding.message]
    assert used_up == ["r101"]


def test_a_pattern_is_compiled_once() -> None:
    rules = [cache_rule(f"r{n}", conditions={"host": {"regex": "("}}) for n in range(102)]
    assert {finding.message for finding in find_all(*rules) if finding.code == CODE} == {
        "The pattern does not compile as RE2: missing ): (."
    }


def test_the_size_of_all_patterns_together_is_limited() -> None:
    rules = [cache_rule(f"r{n}", conditions={"host": {"regex": rf"\pL{{40}}{n}"}}) for n in range(200)]
    findings = [finding for finding in find_all(*rules) if finding.code == CODE]
    assert findings[0].rule_id != "r0"
    assert findings[-1].rule_id == "r199"
    assert findings[-1].message.endswith("the patterns before it have used up the limit of one ruleset.")
