"""``rule-removed-active-marker``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.json_text import show_text
from rules.lint.deletion import RemovedRule
from rules.lint.finding import Severity
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

RULE_REMOVED_ACTIVE_MARKER = declare(
    "rule-removed-active-marker",
    Severity.ERROR,
    "A rule of the stored ruleset is removed while an invalidation marker on it is active. "
    "`?confirmDeletes=` with its id allows that. Checked by write and restore, not by validate.",
)


@RULE_REMOVED_ACTIVE_MARKER.check(RemovedRule)
def check_removed(node: RemovedRule, _context: Context) -> Iterator[Problem]:
    """Require a confirmation, so that an active invalidation is not lost by accident."""
    if node.has_active_marker and not node.confirmed:
        yield Problem(
            ("rules",),
            f"The rule {show_text(node.id)} was removed while an invalidation marker on it is active: "
            f"keep it until the marker expires, or confirm with ?confirmDeletes={node.id}.",
            f"?confirmDeletes={node.id}",
        )
