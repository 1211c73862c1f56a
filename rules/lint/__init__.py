"""Check rulesets for errors and warnings. Each check is a file in ``checks``."""

from rules.lint.finding import Finding, GrosslyMalformed, LintResult, Severity
from rules.lint.registry import FINDING_KINDS, FindingKind
from rules.lint.report import FindingDocument, RuleLintResult, report_finding, report_lint
from rules.lint.runner import lint_ruleset
from rules.lint.write import lint_deletions, lint_write

__all__ = [
    "FINDING_KINDS",
    "Finding",
    "FindingDocument",
    "FindingKind",
    "GrosslyMalformed",
    "LintResult",
    "RuleLintResult",
    "Severity",
    "lint_deletions",
    "lint_ruleset",
    "lint_write",
    "report_finding",
    "report_lint",
]
