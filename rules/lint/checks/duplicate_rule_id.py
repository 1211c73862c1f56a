"""``duplicate-rule-id``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.lint.finding import Severity
from rules.lint.nodes import RuleList
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

DUPLICATE_RULE_ID = declare("duplicate-rule-id", Severity.ERROR, "An earlier rule has the same `id`.")


@DUPLICATE_RULE_ID.check(RuleList)
def check_ruleset(node: RuleList, _context: Context) -> Iterator[Problem]:
    """Require unique ids: logs, markers and references identify rules by them."""
    for rule in node.rules:
        if rule.id is not None and (first := node.by_id[rule.id]) is not rule:
            yield Problem(
                (*rule.path, "id"), f"Rule {first.index + 1} in the list already has the id {rule.id}."
            )
