"""``contradictory-conditions``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.conditions.normal import NEVER
from rules.lint.finding import Severity
from rules.lint.nodes import ValidRule
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTRADICTORY_CONDITIONS = declare(
    "contradictory-conditions",
    Severity.WARNING,
    "The conditions of a rule exclude each other: it never matches.",
)


@CONTRADICTORY_CONDITIONS.check(ValidRule)
def check_rule(node: ValidRule, _context: Context) -> Iterator[Problem]:
    """Warn about rules that can never match."""
    if node.normal is NEVER:
        yield Problem(node.path, "These conditions exclude each other, so the rule never matches.")
