"""Lint made short for tests."""

from __future__ import annotations

from typing import Any

from rules.json_text import join_pointer
from rules.lint import Finding, lint_ruleset


def cache_rule(rule_id: str = "r", /, **fields: Any) -> dict[str, Any]:
    """A rule without findings, but for the fields given."""
    return {"id": rule_id, "conditions": {"userName": rule_id}} | fields


def rule_with(conditions: Any, **fields: Any) -> dict[str, Any]:
    """A rule with these conditions."""
    return {"id": "r", "conditions": conditions} | fields


def find_all(*rules: Any, **members: Any) -> list[Finding]:
    """Every finding about a ruleset, errors first."""
    result = lint_ruleset({"rules": list(rules)} | members)
    return [*result.errors, *result.warnings]


def find_places(code: str, *rules: Any, **members: Any) -> list[str]:
    """The JSON Pointers of the findings with a code."""
    return [join_pointer(finding.path) for finding in find_all(*rules, **members) if finding.code == code]


def find_one(code: str, *rules: Any, **members: Any) -> Finding:
    """The only finding with a code."""
    (finding,) = [finding for finding in find_all(*rules, **members) if finding.code == code]
    return finding


def find_codes(*rules: Any) -> list[str]:
    """The codes of all findings."""
    return [finding.code for finding in find_all(*rules)]


def nest(levels: int) -> dict[str, Any]:
    """Conditions with this many combinators around the innermost object."""
    conditions: dict[str, Any] = {"userName": "ann"}
    for _ in range(levels):
        conditions = {"not": conditions}
    return conditions
