"""``unreachable-rule``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import RuleNode, Ruleset
from rules.lint.reach import find_wider
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

UNREACHABLE_RULE = declare(
    "unreachable-rule",
    Severity.WARNING,
    "An earlier enabled rule matches everything that this one can match, so that this one never decides.",
)


@UNREACHABLE_RULE.check(Ruleset)
def check_ruleset(node: Ruleset, _context: Context) -> Iterator[Problem]:
    """The first match decides: a rule behind a wider one is dead, unless all it does is to invalidate."""
    enabled = [rule for rule in node.sound if rule.rule.enabled]
    covers = find_wider([rule.normal for rule in enabled])
    for rule, cover in zip(enabled, covers, strict=True):
        if cover is None:
            continue
        earlier = enabled[cover].rule
        fires_still = bool(rule.rule.targets) and earlier.action is not Action.DENY
        if not (fires_still and rule.rule.action is Action.INVALIDATE):
            yield Problem(
                rule.rule.path,
                f"{_name(earlier)} stands before this rule and matches all that it can match"
                + ("; its invalidations fire all the same." if fires_still else "."),
            )


def _name(rule: RuleNode) -> str:
    return f"The rule {rule.id}" if rule.id is not None else f"Rule {rule.index + 1} in the list"
