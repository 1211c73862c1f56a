"""``duplicate-conditions``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.conditions.normal import NEVER
from rules.lint.finding import Severity
from rules.lint.nodes import RuleList, ValidRule
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rules.conditions.normal import Conjunction

DUPLICATE_CONDITIONS = declare(
    "duplicate-conditions", Severity.WARNING, "An earlier enabled rule has conditions with the same meaning."
)


@DUPLICATE_CONDITIONS.check(RuleList)
def check_ruleset(node: RuleList, _context: Context) -> Iterator[Problem]:
    """Warn about two enabled rules for the same statements."""
    first: dict[Conjunction, ValidRule] = {}
    for rule in node.valid:
        if not rule.rule.enabled or rule.normal is NEVER:
            continue
        earlier = first.setdefault(rule.normal, rule)
        if earlier is not rule:
            name = earlier.rule.id or f"number {earlier.rule.index + 1} in the list"
            yield Problem(rule.path, f"The rule {name} has conditions with the same meaning.")
