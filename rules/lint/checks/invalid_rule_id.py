"""``invalid-rule-id``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.json_text import show_text
from rules.lint.finding import Severity
from rules.lint.nodes import RULE_ID, RuleNode
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

INVALID_RULE_ID = declare(
    "invalid-rule-id",
    Severity.ERROR,
    "An `id` has characters other than ASCII letters, digits, `.`, `_` and `-`, does not start with "
    "a letter or a digit, or has more than 128 characters.",
)


@INVALID_RULE_ID.check(RuleNode, names=["id"])
def check_rule(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Limit the characters of ids, because ids are used in logs, file names and URLs."""
    rule_id = node.fields.get("id")
    if isinstance(rule_id, str) and node.id is None:
        yield Problem((*node.path, "id"), f"The id {show_text(rule_id)} must match ^{RULE_ID.pattern}$.")
