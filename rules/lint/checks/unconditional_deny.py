"""``unconditional-deny``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import ValidRule
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

UNCONDITIONAL_DENY = declare(
    "unconditional-deny", Severity.ERROR, "A deny rule matches every statement, also while it is disabled."
)


@UNCONDITIONAL_DENY.check(ValidRule)
def check_rule(node: ValidRule, _context: Context) -> Iterator[Problem]:
    """Refuse deny rules that match everything. Enabling such a rule would lock out the tenant."""
    if node.rule.action is Action.DENY and node.matches_everything:
        yield Problem(node.path, "This deny rule would refuse every statement: give it conditions.")
