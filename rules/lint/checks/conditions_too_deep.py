"""``conditions-too-deep``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.conditions.keys import MAX_DEPTH
from rules.lint.finding import Severity
from rules.lint.nodes import Group
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

CONDITIONS_TOO_DEEP = declare(
    "conditions-too-deep",
    Severity.ERROR,
    f"`all`, `any` and `not` are nested more than {MAX_DEPTH} levels deep.",
)


@CONDITIONS_TOO_DEEP.check(Group)
def check_group(node: Group, _context: Context) -> Iterator[Problem]:
    """Limit nesting. Report the first object beyond the limit, without looking into it."""
    if node.depth > MAX_DEPTH:
        yield Problem(
            node.path, f"all, any and not may be nested {MAX_DEPTH} levels deep; this is one level more."
        )
