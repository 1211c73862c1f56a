"""Errors that refuse a ruleset. Contract: Lint result, Errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenantadmin.lib.core.errors import Detail, ValidationFailed

if TYPE_CHECKING:
    from rules.lint import GrosslyMalformed, LintResult


class RulesetRejected(ValidationFailed):
    """Lint found errors. The answer is the error body and the lint result in one object."""

    def __init__(self, result: LintResult) -> None:
        count = len(result.errors)
        super().__init__(
            f"The ruleset has {count} blocking {'error' if count == 1 else 'errors'}.",
            extra=result.as_json(),
        )


def malformed_ruleset(error: GrosslyMalformed) -> ValidationFailed:
    """Return the error for a document that is not a ruleset."""
    return ValidationFailed(str(error), details=[Detail(error.path, "wrong-type", str(error))])
