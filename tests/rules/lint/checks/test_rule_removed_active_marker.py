"""``rule-removed-active-marker``: a removed rule with an active marker."""

from __future__ import annotations

from rules.lint import Finding, lint_deletions
from tests.rules.lint.helpers import cache_rule

CODE = "rule-removed-active-marker"
STORED = [cache_rule("b"), cache_rule("a"), cache_rule("c")]


def lint(new_rules: object, *, confirmed: set[str] | None = None) -> list[Finding]:
    return lint_deletions(
        stored_rules=STORED,
        new_rules=new_rules,
        active_marker_targets={"a", "b", "gone"},
        confirmed=confirmed or set(),
    )


def test_findings_are_sorted_by_removed_rule_id() -> None:
    findings = lint([cache_rule("c")])

    assert [(finding.code, finding.rule_id, finding.path) for finding in findings] == [
        (CODE, "a", ("rules",)),
        (CODE, "b", ("rules",)),
    ]
    assert findings[0].suggestion == "?confirmDeletes=a"


def test_confirmed_rules_may_be_removed() -> None:
    assert [finding.rule_id for finding in lint([], confirmed={"a", "c"})] == ["b"]


def test_rules_that_are_kept_are_not_reported() -> None:
    assert lint([cache_rule("a"), cache_rule("b")]) == []


def test_an_invalid_ruleset_can_be_compared() -> None:
    assert [finding.rule_id for finding in lint([None, {"id": 1}, {"id": "a", "invalidateRules": 3}])] == [
        "b"
    ]
    assert [finding.rule_id for finding in lint("no rules")] == ["a", "b"]


def test_both_findings_of_one_removed_rule_are_next_to_each_other() -> None:
    findings = lint([cache_rule("w", invalidateRules=["b"])])
    assert [(finding.rule_id, finding.code) for finding in findings] == [
        ("a", CODE),
        ("b", "rule-removed-still-referenced"),
        ("b", CODE),
    ]
