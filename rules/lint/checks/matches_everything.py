"""``matches-everything``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.conditions.normal import ALWAYS
from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import SoundRule
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

MATCHES_EVERYTHING = declare(
    "matches-everything",
    Severity.WARNING,
    "The conditions of a rule hold for every statement (on a deny rule: `unconditional-deny`).",
)


@MATCHES_EVERYTHING.check(SoundRule)
def check_rule(node: SoundRule, _context: Context) -> Iterator[Problem]:
    """A rule for everything may be meant, or its conditions forgotten."""
    if node.rule.action is not Action.DENY and node.normal == ALWAYS:
        yield Problem(node.path, "This rule matches every statement.")
