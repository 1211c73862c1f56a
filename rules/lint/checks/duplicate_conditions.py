"""``duplicate-conditions``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.conditions.normal import NEVER
from rules.lint.finding import Severity
from rules.lint.nodes import Ruleset, SoundRule
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rules.conditions.normal import Conjunction

DUPLICATE_CONDITIONS = declare(
    "duplicate-conditions", Severity.WARNING, "An earlier enabled rule has conditions of the same meaning."
)


@DUPLICATE_CONDITIONS.check(Ruleset)
def check_ruleset(node: Ruleset, _context: Context) -> Iterator[Problem]:
    """Two rules for the same statements are one too many."""
    first: dict[Conjunction, SoundRule] = {}
    for rule in node.sound:
        if not rule.rule.enabled or rule.normal is NEVER:
            continue
        earlier = first.setdefault(rule.normal, rule)
        if earlier is not rule:
            name = earlier.rule.id or f"number {earlier.rule.index + 1} in the list"
            yield Problem(rule.path, f"The rule {name} has conditions of the same meaning.")
