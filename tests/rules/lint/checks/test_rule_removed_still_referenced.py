"""``rule-removed-still-referenced``: a removed rule that others still invalidate."""

from __future__ import annotations

from typing import Any

import msgspec

from rules.lint import LintResult, lint_write, report_finding
from tests.rules.lint.helpers import cache_rule

CODE = "rule-removed-still-referenced"
STORED = [cache_rule("a"), cache_rule("b"), cache_rule("w", invalidateRules=["a", "b"])]


def lint(*rules: dict[str, Any], confirmed: set[str] | None = None) -> LintResult:
    return lint_write(
        {"rules": list(rules)},
        stored_rules=STORED,
        active_marker_targets=set(),
        confirmed=confirmed or set(),
    )


def test_the_finding_names_the_removed_rule_and_the_rules_that_refer_to_it() -> None:
    result = lint(
        cache_rule("b"), cache_rule("w", invalidateRules=["b", "a"]), cache_rule("v", invalidateRules=["a"])
    )

    (finding,) = result.errors
    assert msgspec.to_builtins(report_finding(finding)) == {
        "code": CODE,
        "severity": "error",
        "ruleId": "a",
        "path": "/rules/1/invalidateRules/1",
        "message": 'The rule "a" was removed but is still named in invalidateRules of w, v: '
        "keep it, or remove the references.",
    }
    assert result.normalized is None


def test_the_finding_replaces_only_the_dangling_reference_to_that_rule() -> None:
    result = lint(cache_rule("w", invalidateRules=["b", "never-was", "a"]))

    assert [(finding.code, finding.subject) for finding in result.errors] == [
        ("dangling-invalidate-reference", "never-was"),
        (CODE, "a"),
        (CODE, "b"),
    ]


def test_the_warnings_stay_beside_it() -> None:
    result = lint(cache_rule("b"), cache_rule("w", invalidateRules=["a"], conditions={}))
    assert [finding.code for finding in result.warnings] == ["matches-everything"]


def test_a_confirmation_does_not_remove_the_finding() -> None:
    result = lint(cache_rule("b"), cache_rule("w", invalidateRules=["a"]), confirmed={"a"})
    assert [finding.code for finding in result.errors] == [CODE]


def test_a_rule_may_be_removed_with_the_references_to_it() -> None:
    result = lint(cache_rule("b"), cache_rule("w", invalidateRules=["b"]))
    assert result.valid
    assert result.normalized is not None


def test_a_referring_rule_without_a_valid_id_is_named_by_its_number() -> None:
    finding = lint(cache_rule("b"), cache_rule("x", id="\ud800", invalidateRules=["a"])).errors[-1]
    assert finding.code == CODE
    assert "of rule 2 in the list: " in finding.message


def test_the_message_counts_many_referring_rules() -> None:
    referrers = [cache_rule(f"w{n}", invalidateRules=["a"]) for n in range(12)]
    (finding,) = lint(cache_rule("b"), *referrers).errors
    assert "of w0, w1, w2, w3, w4, w5, w6, w7, w8, w9 and 2 more: " in finding.message
    (finding,) = lint(cache_rule("b"), *referrers[:10]).errors
    assert "of w0, w1, w2, w3, w4, w5, w6, w7, w8, w9: " in finding.message
