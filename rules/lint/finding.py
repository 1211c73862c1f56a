"""The result of a lint. Contract: "Lint result (`RuleLintResult`)"."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rules.json_text import Path


class Severity(StrEnum):
    """An error blocks a write, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes:
        rule_id: None if the rule has no valid id.
        path: the place in the document. For a missing property, the path that it would have.
        message: what is wrong, and what was probably meant.
        suggestion: what was probably meant, for programs.
        subject: the id that the finding is about. It is not published.
        caused_by: the id of the rule that causes it, if another one does.
        hurts: publishing the rule may give wrong results, or those of another user.
    """

    code: str
    severity: Severity
    rule_id: str | None
    path: Path
    message: str
    suggestion: str | None = None
    subject: str | None = None
    hurts: bool = False
    caused_by: str | None = None


def encodable(text: str) -> str:
    """Replace unpaired surrogates, which JSON can contain as escapes but a response in UTF-8 cannot."""
    return text.encode(errors="replace").decode()


@dataclass(frozen=True, slots=True)
class LintResult:
    """All findings, in document order.

    ``normalized`` has the rules as they are stored, with all defaults; None if the ruleset is invalid.
    """

    errors: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    normalized: tuple[dict[str, object], ...] | None

    @property
    def valid(self) -> bool:
        """True if there are no errors."""
        return not self.errors


class GrosslyMalformed(ValueError):
    """The document is not an object, or its ``rules`` are not an array. ``path`` is a JSON Pointer."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path
