"""Errors that refuse a ruleset. Contract: Lint result, Errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.lint import FindingDocument, report_lint
from tenantadmin.lib.core.errors import Detail, ErrorBody, ValidationFailed

if TYPE_CHECKING:
    from rules.lint import GrosslyMalformed, LintResult


class RulesetRefusal(ErrorBody):
    """The error body. If lint refused the ruleset, the same object holds the lint result."""

    valid: bool | None = None
    errors: list[FindingDocument] | None = None
    warnings: list[FindingDocument] | None = None


class RulesetRejected(ValidationFailed):
    """Lint found errors. The answer is a `RulesetRefusal` with the lint result."""

    def __init__(self, result: LintResult) -> None:
        count = len(result.errors)
        super().__init__(f"The ruleset has {count} blocking {'error' if count == 1 else 'errors'}.")
        self.report = report_lint(result)

    def body(self) -> RulesetRefusal:
        report = self.report
        return RulesetRefusal.of(
            super().body(), valid=report.valid, errors=report.errors, warnings=report.warnings
        )


def malformed_ruleset(error: GrosslyMalformed) -> ValidationFailed:
    """Return the error for a document that is not a ruleset."""
    return ValidationFailed(str(error), details=[Detail(error.path, "wrong-type", str(error))])
