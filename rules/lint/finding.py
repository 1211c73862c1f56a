"""What lint says about a ruleset. Contract: "Lint result (`RuleLintResult`)"."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from rules.json_text import join_pointer

if TYPE_CHECKING:
    from rules.json_text import Path


class Severity(StrEnum):
    """Errors block a write, warnings never do."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. ``path`` leads from the document to the place; a missing member is named by its path.

    ``rule_id`` is None where the rule has no valid id. ``subject`` is the id that the finding speaks of,
    for code that weighs findings against each other; it is not published.
    """

    code: str
    severity: Severity
    rule_id: str | None
    path: Path
    message: str
    suggestion: str | None = None
    subject: str | None = field(default=None, compare=False)

    def as_json(self) -> dict[str, object]:
        """``{code, severity, ruleId, path, message, suggestion?}``, the path as a JSON Pointer."""
        document: dict[str, object] = {
            "code": self.code,
            "severity": self.severity.value,
            "ruleId": self.rule_id,
            "path": encodable(join_pointer(self.path)),
            "message": self.message,
        }
        return document if self.suggestion is None else document | {"suggestion": encodable(self.suggestion)}


def encodable(text: str) -> str:
    """Replace unpaired surrogates, which a JSON text may name but no response can carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class LintResult:
    """All findings, each list in document order.

    ``normalized`` holds the rules with every default written out, ready to be stored; None when invalid.
    """

    errors: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    normalized: tuple[dict[str, object], ...] | None

    @property
    def valid(self) -> bool:
        """Whether nothing blocks the ruleset."""
        return not self.errors

    def as_json(self) -> dict[str, object]:
        """``{valid, errors, warnings}``."""
        return {
            "valid": self.valid,
            "errors": [finding.as_json() for finding in self.errors],
            "warnings": [finding.as_json() for finding in self.warnings],
        }


class GrosslyMalformed(ValueError):
    """Not a ruleset at all: no object, or ``rules`` is no array. ``path`` is a JSON Pointer."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path
