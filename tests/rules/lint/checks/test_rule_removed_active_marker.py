"""``rule-removed-active-marker``: a removed rule with an invalidation under way."""

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


def test_by_removed_rule_id() -> None:
    findings = lint([cache_rule("c")])

    assert [(finding.code, finding.rule_id, finding.path) for finding in findings] == [
        (CODE, "a", ("rules",)),
        (CODE, "b", ("rules",)),
    ]
    assert findings[0].suggestion == "?confirmDeletes=a"


def test_confirmed_rules_go() -> None:
    assert [finding.rule_id for finding in lint([], confirmed={"a", "c"})] == ["b"]


def test_rules_that_stay_are_no_matter() -> None:
    assert lint([cache_rule("a"), cache_rule("b")]) == []


def test_a_ruleset_in_any_state_is_compared() -> None:
    assert [finding.rule_id for finding in lint([None, {"id": 1}, {"id": "a", "invalidateRules": 3}])] == [
        "b"
    ]
    assert [finding.rule_id for finding in lint("no rules")] == ["a", "b"]


def test_both_kinds_about_one_rule_stand_together() -> None:
    findings = lint([cache_rule("w", invalidateRules=["b"])])
    assert [(finding.rule_id, finding.code) for finding in findings] == [
        ("a", CODE),
        ("b", "rule-removed-still-referenced"),
        ("b", CODE),
    ]
