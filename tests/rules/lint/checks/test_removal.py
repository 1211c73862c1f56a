"""Rules of the stored ruleset that are removed."""

from __future__ import annotations

from typing import Any

import msgspec

from rules.lint import Finding, LintResult, lint_deletions, lint_write, report_finding
from tests.rules.lint.helpers import cache_rule

RULE_REMOVED_STILL_REFERENCED = "rule-removed-still-referenced"
STORED_REFERENCES = [
    cache_rule("a"),
    cache_rule("b"),
    cache_rule("w", invalidateRules=["a", "b"]),
]


def lint_with_references(*rules: dict[str, Any], confirmed: set[str] | None = None) -> LintResult:
    return lint_write(
        {"rules": list(rules)},
        stored_rules=STORED_REFERENCES,
        active_marker_targets=set(),
        confirmed=confirmed or set(),
    )


def test_the_finding_names_the_removed_rule_and_the_rules_that_refer_to_it() -> None:
    result = lint_with_references(
        cache_rule("b"), cache_rule("w", invalidateRules=["b", "a"]), cache_rule("v", invalidateRules=["a"])
    )

    (finding,) = result.errors
    assert msgspec.to_builtins(report_finding(finding)) == {
        "code": RULE_REMOVED_STILL_REFERENCED,
        "severity": "error",
        "ruleId": "a",
        "path": "/rules/1/invalidateRules/1",
        "message": 'The rule "a" was removed but is still named in invalidateRules of w, v: '
        "keep it, or remove the references.",
    }
    assert result.normalized is None


def test_the_finding_replaces_only_the_dangling_reference_to_that_rule() -> None:
    result = lint_with_references(cache_rule("w", invalidateRules=["b", "never-was", "a"]))

    assert [(finding.code, finding.subject) for finding in result.errors] == [
        ("dangling-invalidate-reference", "never-was"),
        (RULE_REMOVED_STILL_REFERENCED, "a"),
        (RULE_REMOVED_STILL_REFERENCED, "b"),
    ]


def test_the_warnings_stay_beside_it() -> None:
    result = lint_with_references(cache_rule("b"), cache_rule("w", invalidateRules=["a"], conditions={}))
    assert [finding.code for finding in result.warnings] == ["matches-everything"]


def test_a_confirmation_does_not_remove_the_finding() -> None:
    result = lint_with_references(cache_rule("b"), cache_rule("w", invalidateRules=["a"]), confirmed={"a"})
    assert [finding.code for finding in result.errors] == [RULE_REMOVED_STILL_REFERENCED]


def test_a_rule_may_be_removed_with_the_references_to_it() -> None:
    result = lint_with_references(cache_rule("b"), cache_rule("w", invalidateRules=["b"]))
    assert result.valid
    assert result.normalized is not None


def test_a_referring_rule_without_a_valid_id_is_named_by_its_number() -> None:
    finding = lint_with_references(
        cache_rule("b"), cache_rule("x", id="\ud800", invalidateRules=["a"])
    ).errors[-1]
    assert finding.code == RULE_REMOVED_STILL_REFERENCED
    assert "of rule 2 in the list: " in finding.message


def test_the_message_counts_many_referring_rules() -> None:
    referrers = [cache_rule(f"w{n}", invalidateRules=["a"]) for n in range(12)]
    (finding,) = lint_with_references(cache_rule("b"), *referrers).errors
    assert "of w0, w1, w2, w3, w4, w5, w6, w7, w8, w9 and 2 more: " in finding.message
    (finding,) = lint_with_references(cache_rule("b"), *referrers[:10]).errors
    assert "of w0, w1, w2, w3, w4, w5, w6, w7, w8, w9: " in finding.message


RULE_REMOVED_ACTIVE_MARKER = "rule-removed-active-marker"
STORED_TARGETS = [cache_rule("b"), cache_rule("a"), cache_rule("c")]


def lint_with_markers(new_rules: object, *, confirmed: set[str] | None = None) -> list[Finding]:
    return lint_deletions(
        stored_rules=STORED_TARGETS,
        new_rules=new_rules,
        active_marker_targets={"a", "b", "gone"},
        confirmed=confirmed or set(),
    )


def test_findings_are_sorted_by_removed_rule_id() -> None:
    findings = lint_with_markers([cache_rule("c")])

    assert [(finding.code, finding.rule_id, finding.path) for finding in findings] == [
        (RULE_REMOVED_ACTIVE_MARKER, "a", ("rules",)),
        (RULE_REMOVED_ACTIVE_MARKER, "b", ("rules",)),
    ]
    assert findings[0].suggestion == "?confirmDeletes=a"


def test_confirmed_rules_may_be_removed() -> None:
    assert [finding.rule_id for finding in lint_with_markers([], confirmed={"a", "c"})] == ["b"]


def test_rules_that_are_kept_are_not_reported() -> None:
    assert lint_with_markers([cache_rule("a"), cache_rule("b")]) == []


def test_an_invalid_ruleset_can_be_compared() -> None:
    assert [
        finding.rule_id for finding in lint_with_markers([None, {"id": 1}, {"id": "a", "invalidateRules": 3}])
    ] == ["b"]
    assert [finding.rule_id for finding in lint_with_markers("no rules")] == ["a", "b"]


def test_both_findings_of_one_removed_rule_are_next_to_each_other() -> None:
    findings = lint_with_markers([cache_rule("w", invalidateRules=["b"])])
    assert [(finding.rule_id, finding.code) for finding in findings] == [
        ("a", RULE_REMOVED_ACTIVE_MARKER),
        ("b", "rule-removed-still-referenced"),
        ("b", RULE_REMOVED_ACTIVE_MARKER),
    ]
