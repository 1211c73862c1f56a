"""``dangling-invalidate-reference``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.json_text import show_text
from rules.lint.finding import Severity
from rules.lint.nodes import RuleList
from rules.lint.registry import Context, Problem, declare
from rules.lint.spelling import ask_nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

DANGLING_INVALIDATE_REFERENCE = declare(
    "dangling-invalidate-reference",
    Severity.ERROR,
    "An element of `invalidateRules` is not the id of a rule.",
)


@DANGLING_INVALIDATE_REFERENCE.check(RuleList)
def check_ruleset(node: RuleList, context: Context) -> Iterator[Problem]:
    """Require that each target exists. Otherwise its stale results would stay in the cache."""
    for rule in node.rules:
        for index, target in enumerate(rule.targets):
            if isinstance(target, str) and target not in node.by_id:
                nearest = context.suggester.find_nearest(target, node.by_id)
                yield Problem(
                    (*rule.path, "invalidateRules", index),
                    f"There is no rule {show_text(target)} to invalidate{ask_nearest(nearest)}",
                    nearest,
                    subject=target,
                )
