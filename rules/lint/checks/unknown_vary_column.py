"""``unknown-vary-column``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.json_text import show_text
from rules.language import VARY_COLUMNS
from rules.lint.finding import Severity
from rules.lint.nodes import RuleNode
from rules.lint.registry import Context, Problem, declare
from rules.lint.spelling import ask_nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

UNKNOWN_VARY_COLUMN = declare(
    "unknown-vary-column", Severity.ERROR, "An element of `varyBy` is not a column that results can vary by."
)


@UNKNOWN_VARY_COLUMN.check(RuleNode, names=["varyBy"])
def check_rule(node: RuleNode, context: Context) -> Iterator[Problem]:
    """Allow only columns that a request carries."""
    for index, column in enumerate(node.vary_by):
        if isinstance(column, str) and column not in VARY_COLUMNS:
            nearest = context.suggester.find_nearest(column, VARY_COLUMNS)
            hint = ask_nearest(nearest, otherwise=f"; use {', '.join(VARY_COLUMNS)}.")
            yield Problem(
                (*node.path, "varyBy", index), f"Results cannot vary by {show_text(column)}{hint}", nearest
            )
