"""Helpers to lint rules in tests."""

from __future__ import annotations

from typing import Any

from rules.json_text import join_pointer
from rules.lint import Finding, lint_ruleset


def cache_rule(rule_id: str = "r", /, **fields: Any) -> dict[str, Any]:
    """Return a rule without findings, with other fields as given."""
    rule = {"id": rule_id, "conditions": {"userName": rule_id}} | fields
    is_cache = rule.get("action", "cache") == "cache" and "invalidateRules" not in rule
    return rule | ({"varyBy": []} if is_cache and "varyBy" not in rule else {})


def rule_with(conditions: Any, **fields: Any) -> dict[str, Any]:
    """Return a rule with these conditions."""
    return {"id": "r", "conditions": conditions} | fields


def find_all(*rules: Any, **members: Any) -> list[Finding]:
    """Return all findings of a ruleset, errors first. Each has a message."""
    result = lint_ruleset({"rules": list(rules)} | members)
    findings = [*result.errors, *result.warnings]
    assert all(finding.message for finding in findings)
    return findings


def find_places(code: str, *rules: Any, **members: Any) -> list[str]:
    """Return the JSON Pointers of the findings with a code."""
    return [join_pointer(finding.path) for finding in find_all(*rules, **members) if finding.code == code]


def find_one(code: str, *rules: Any, **members: Any) -> Finding:
    """Return the only finding with a code."""
    (finding,) = [finding for finding in find_all(*rules, **members) if finding.code == code]
    return finding


def find_codes(*rules: Any) -> list[str]:
    """Return the codes of all findings."""
    return [finding.code for finding in find_all(*rules)]


def nest(levels: int) -> dict[str, Any]:
    """Return conditions with this many combinators around the innermost object."""
    conditions: dict[str, Any] = {"userName": "ann"}
    for _ in range(levels):
        conditions = {"not": conditions}
    return conditions
