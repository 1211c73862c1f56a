"""``unconditional-deny``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.conditions.normal import ALWAYS
from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import SoundRule
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

UNCONDITIONAL_DENY = declare(
    "unconditional-deny", Severity.ERROR, "A deny rule matches every statement, also while it is disabled."
)


@UNCONDITIONAL_DENY.check(SoundRule)
def check_rule(node: SoundRule, _context: Context) -> Iterator[Problem]:
    """No rule may shut a tenant out altogether, nor lie ready to."""
    if node.rule.action is Action.DENY and node.normal == ALWAYS:
        yield Problem(node.path, "This deny rule would refuse every statement: give it conditions.")
