"""``invalid-regex``: patterns are RE2."""

from __future__ import annotations

import pytest

from tests.rules.lint.helpers import cache_rule, find_all, find_one, find_places, rule_with

CODE = "invalid-regex"


@pytest.mark.parametrize(
    "pattern", ["(", "[a", "a**", "(?=a)", r"\1", "(?<name>a)", "((a{100}){100}){100}", r"(\pL{100}){10}"]
)
def test_what_does_not_compile(pattern: str) -> None:
    finding = find_one(CODE, rule_with({"standardizedSql": {"regex": pattern}}))
    assert finding.path == ("rules", 0, "conditions", "standardizedSql", "regex")
    assert finding.message.startswith("The pattern does not compile as RE2: ")


@pytest.mark.parametrize("pattern", ["", "a|b", "(?i)select", "(?P<name>a)", "^(a+)+$"])
def test_what_compiles(pattern: str) -> None:
    assert find_places(CODE, rule_with({"standardizedSql": {"regex": pattern}})) == []


def test_a_pattern_is_compiled_as_it_is_used() -> None:
    # With case ignored, the class of capitals shrinks to that of letters that have a case.
    conditions = {
        "userName": {"regex": r"\p{Lu}{100}", "ignoreCase": True},
        "host": {"regex": r"\p{Lu}{100}"},
    }
    assert find_places(CODE, rule_with(conditions)) == ["/rules/0/conditions/host/regex"]


def test_patterns_together_have_a_limit() -> None:
    rules = [cache_rule(f"r{n}", conditions={"host": {"regex": rf"\pL{{40}}{n}"}}) for n in range(200)]
    findings = [finding for finding in find_all(*rules) if finding.code == CODE]
    assert findings[0].rule_id != "r0"
    assert findings[-1].rule_id == "r199"
    assert findings[-1].message.endswith("the patterns before it have used up what one ruleset may compile.")
