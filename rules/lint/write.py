"""Lint as a write and a restore run it: with the deletion delta against the stored ruleset.

Contract: "Tenants and configuration", rules 2 and 4: validate runs :func:`rules.lint.lint_ruleset` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.json_text import is_object
from rules.lint.checks.dangling_invalidate_reference import DANGLING_INVALIDATE_REFERENCE
from rules.lint.checks.rule_removed_still_referenced import RULE_REMOVED_STILL_REFERENCED
from rules.lint.deletion import find_removed
from rules.lint.finding import Finding, LintResult
from rules.lint.registry import Context, run_checks
from rules.lint.runner import lint_ruleset

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rules.json_text import JsonObject


def lint_deletions(
    *,
    stored_rules: Sequence[JsonObject],
    new_rules: object,
    active_marker_targets: Collection[str],
    confirmed: Collection[str],
) -> list[Finding]:
    """Find removed rules that something still depends on, by removed rule id.

    ``active_marker_targets`` are the ids of rules with an unexpired marker, ``confirmed`` those that the
    caller agreed to lose by ``confirmDeletes``. A finding's ``rule_id`` is that of the removed rule.
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
        for kind, problem in run_checks(removed, context)
    ]


def lint_write(
    document: object,
    *,
    stored_rules: Sequence[JsonObject],
    active_marker_targets: Collection[str],
    confirmed: Collection[str],
) -> LintResult:
    """Lint a ruleset that is to replace the stored one.

    As :func:`lint_ruleset`, then the deletion delta. Where a rule was removed,
    ``rule-removed-still-referenced`` stands in place of the ``dangling-invalidate-reference`` about it.

    Raises:
        GrosslyMalformed: the document is no object, or its ``rules`` are no array.
    """
    result = lint_ruleset(document)
    deletions = lint_deletions(
        stored_rules=stored_rules,
        new_rules=document.get("rules") if is_object(document) else None,
        active_marker_targets=active_marker_targets,
        confirmed=confirmed,
    )
    if not deletions:
        return result
    explained = {
        finding.subject for finding in deletions if finding.code == RULE_REMOVED_STILL_REFERENCED.code
    }
    kept = tuple(
        finding
        for finding in result.errors
        if finding.code != DANGLING_INVALIDATE_REFERENCE.code or finding.subject not in explained
    )
    return LintResult(errors=(*kept, *deletions), warnings=result.warnings, normalized=None)
