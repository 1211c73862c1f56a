"""``swr-out-of-range``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.json_text import read_integer, show_value
from rules.language import RULE_FIELDS
from rules.lint.finding import Severity
from rules.lint.nodes import RuleNode
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

SWR_OUT_OF_RANGE = declare(
    "swr-out-of-range", Severity.ERROR, "`staleWhileRevalidate` is not between 0 and 604800 seconds (a week)."
)


@SWR_OUT_OF_RANGE.check(RuleNode, names=["staleWhileRevalidate"])
def check_rule(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Check the bounds of the stale window."""
    field = RULE_FIELDS["staleWhileRevalidate"]
    window = read_integer(node.fields.get(field.name))
    if window is not None and node.stale_while_revalidate is None:
        yield Problem(
            (*node.path, field.name),
            f"{field.name} must be {field.minimum} to {field.maximum} seconds, not {show_value(window)}.",
        )
