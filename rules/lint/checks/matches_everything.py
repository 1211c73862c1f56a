"""``matches-everything``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import ValidRule
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

MATCHES_EVERYTHING = declare(
    "matches-everything",
    Severity.WARNING,
    "The conditions of a rule match every statement. (For a deny rule, see `unconditional-deny`.)",
)


@MATCHES_EVERYTHING.check(ValidRule)
def check_rule(node: ValidRule, _context: Context) -> Iterator[Problem]:
    """Warn about rules that match everything: conditions may have been forgotten."""
    if node.rule.action is not Action.DENY and node.matches_everything:
        yield Problem(node.path, "This rule matches every statement.")
