"""Lint for a write or a restore, which also checks the rules that are removed.

Contract: "Tenants and configuration", rules 2 and 4. Validate only runs :func:`rules.lint.lint_ruleset`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rules.json_text import is_object
from rules.lint.checks.actions import DANGLING_INVALIDATE_REFERENCE
from rules.lint.checks.removal import RULE_REMOVED_STILL_REFERENCED
from rules.lint.deletion import find_removed
from rules.lint.finding import Finding, LintResult
from rules.lint.registry import Context, select_checks
from rules.lint.runner import ANY_TENANT, lint_ruleset
from rules.tables.warehouse import ANY_TABLES, WarehouseTables

if TYPE_CHECKING:
    from rules.json_text import JsonObject
    from rules.language import CachingDefaults


def lint_deletions(
    *,
    stored_rules: Sequence[JsonObject],
    new_rules: object,
    active_marker_targets: Collection[str],
    confirmed: Collection[str],
) -> list[Finding]:
    """Return findings for removed rules that something still depends on, sorted by rule id.

    The ``rule_id`` of a finding is the removed rule's.

    Args:
        active_marker_targets: the ids of rules with an unexpired marker.
        confirmed: the ids in ``confirmDeletes``.
    """
    context = Context()
    return [
        kind.make_finding(problem, removed.id)
        for removed in find_removed(
            stored_rules=stored_rules,
            new_rules=new_rules,
            active_marker_targets=active_marker_targets,
            confirmed=confirmed,
        )
        for kind, check in select_checks(removed)
        for problem in check(removed, context)
    ]


def lint_write(
    document: object,
    *,
    stored_rules: Sequence[JsonObject],
    active_marker_targets: Collection[str],
    confirmed: Collection[str],
    caching: CachingDefaults = ANY_TENANT,
    tables: WarehouseTables = ANY_TABLES,
) -> LintResult:
    """Lint a ruleset that will replace the stored one.

    Runs :func:`lint_ruleset`, then :func:`lint_deletions`. A ``rule-removed-still-referenced`` replaces the
    ``dangling-invalidate-reference`` errors for the same rule.

    Raises:
        GrosslyMalformed: the document is not an object, or its ``rules`` are not an array.
    """
    result = lint_ruleset(document, caching=caching, tables=tables)
    deletions = lint_deletions(
        stored_rules=stored_rules,
        new_rules=document.get("rules") if is_object(document) else None,
        active_marker_targets=active_marker_targets,
        confirmed=confirmed,
    )
    if not deletions:
        return result
    removed_ids = {
        finding.subject for finding in deletions if finding.code == RULE_REMOVED_STILL_REFERENCED.code
    }
    errors = tuple(
        finding
        for finding in result.errors
        if finding.code != DANGLING_INVALIDATE_REFERENCE.code or finding.subject not in removed_ids
    )
    return LintResult(errors=(*errors, *deletions), warnings=result.warnings, normalized=None)
