"""``unreachable-rule``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rules.language import Action
from rules.lint import limits
from rules.lint.finding import Severity
from rules.lint.nodes import RuleList, RuleNode
from rules.lint.reach import find_wider
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

UNREACHABLE_RULE = declare(
    "unreachable-rule",
    Severity.WARNING,
    "An earlier enabled rule matches everything that this rule matches, so this rule never decides.",
)


@UNREACHABLE_RULE.check(RuleList)
def check_ruleset(node: RuleList, context: Context) -> Iterator[Problem]:
    """Warn about rules behind a wider one, because the first match decides.

    A rule that only invalidates still fires, unless the wider one denies.
    """
    enabled = [rule for rule in node.valid if rule.rule.enabled]
    covers, incomplete = find_wider(
        [rule.normal for rule in enabled], is_late=partial(context.has_used, limits.WARNINGS_SECONDS)
    )
    context.incomplete += [enabled[index].rule.path for index in incomplete]
    for rule, cover in zip(enabled, covers, strict=True):
        if cover is None:
            continue
        earlier = enabled[cover].rule
        still_fires = bool(rule.rule.targets) and earlier.action is not Action.DENY
        if not (still_fires and rule.rule.action is Action.INVALIDATE):
            yield Problem(
                rule.rule.path,
                f"{_name(earlier)} comes before this rule and matches everything that it matches"
                + ("; its invalidations still fire." if still_fires else "."),
                caused_by=earlier.id,
            )


def _name(rule: RuleNode) -> str:
    return f"The rule {rule.id}" if rule.id is not None else f"Rule {rule.index + 1} in the list"
