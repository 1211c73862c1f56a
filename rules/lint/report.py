"""The result of a lint as JSON. Contract: "Lint result (`RuleLintResult`)"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from rules.diff import RuleChange
from rules.json_text import join_pointer
from rules.lint import checks  # noqa: F401 - importing checks registers their codes
from rules.lint.finding import Severity, encodable
from rules.lint.registry import FINDING_KINDS
from tenantadmin.lib.core.structs import JsonStruct, one_of

if TYPE_CHECKING:
    from rules.lint.finding import Finding, LintResult


class FindingDocument(JsonStruct):
    """One finding of lint."""

    code: Annotated[str, one_of(sorted(FINDING_KINDS))]
    severity: Severity
    rule_id: str | None
    path: Annotated[str, Meta(description="JSON Pointer.")]
    message: str
    suggestion: str | None = None
    hurts: Annotated[
        bool,
        Meta(
            description="Publishing the rule may give wrong results, or those of another user. A program in "
            "which people publish should have them confirm it."
        ),
    ] = False
    caused_by: Annotated[
        str | None, Meta(description="The id of the other rule that causes it, if one rule does.")
    ] = None


class RuleLintResult(JsonStruct):
    """The findings of lint. Warnings do not make a ruleset invalid."""

    valid: bool
    errors: list[FindingDocument]
    warnings: list[FindingDocument]
    changed: Annotated[
        tuple[RuleChange, ...] | None, Meta(description="The rules that differ from those in `compareWith`.")
    ] = None


def report_finding(finding: Finding) -> FindingDocument:
    return FindingDocument.of(
        finding,
        path=encodable(join_pointer(finding.path)),
        suggestion=None if finding.suggestion is None else encodable(finding.suggestion),
    )


def report_lint(result: LintResult) -> RuleLintResult:
    return RuleLintResult(
        valid=result.valid,
        errors=list(map(report_finding, result.errors)),
        warnings=list(map(report_finding, result.warnings)),
    )
