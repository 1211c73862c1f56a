"""Rules of the stored ruleset that are removed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from rules.json_text import show_text
from rules.lint.deletion import RemovedRule
from rules.lint.finding import Severity
from rules.lint.registry import Context, Problem, declare

RULE_REMOVED_STILL_REFERENCED = declare(
    "rule-removed-still-referenced",
    Severity.ERROR,
    "A rule of the stored ruleset is removed, and another rule still invalidates it. Replaces "
    "`dangling-invalidate-reference`. Checked by write and restore, not by validate.",
)
_MAX_REFERRERS: Final = 10


@RULE_REMOVED_STILL_REFERENCED.check(RemovedRule)
def check_rule_removed_still_referenced(node: RemovedRule, _context: Context) -> Iterator[Problem]:
    """Require that no references to a removed rule are left."""
    if node.references:
        names = list(dict.fromkeys(reference.referrer for reference in node.references))
        shown = ", ".join(islice(names, _MAX_REFERRERS))
        more = f" and {len(names) - _MAX_REFERRERS} more" if len(names) > _MAX_REFERRERS else ""
        yield Problem(
            node.references[0].path,
            f"The rule {show_text(node.id)} was removed but is still named in invalidateRules "
            f"of {shown}{more}: keep it, or remove the references.",
            subject=node.id,
        )


RULE_REMOVED_ACTIVE_MARKER = declare(
    "rule-removed-active-marker",
    Severity.ERROR,
    "A rule of the stored ruleset is removed while an invalidation marker on it is active. "
    "`?confirmDeletes=` with its id allows that. Checked by write and restore, not by validate.",
)


@RULE_REMOVED_ACTIVE_MARKER.check(RemovedRule)
def check_rule_removed_active_marker(node: RemovedRule, _context: Context) -> Iterator[Problem]:
    """Require a confirmation, so that an active invalidation is not lost by accident."""
    if node.has_active_marker and not node.confirmed:
        yield Problem(
            ("rules",),
            f"The rule {show_text(node.id)} was removed while an invalidation marker on it is active: "
            f"keep it until the marker expires, or confirm with ?confirmDeletes={node.id}.",
            f"?confirmDeletes={node.id}",
        )
