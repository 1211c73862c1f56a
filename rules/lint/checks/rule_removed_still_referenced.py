"""``rule-removed-still-referenced``."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from rules.json_text import show_text
from rules.lint.deletion import RemovedRule
from rules.lint.finding import Severity
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

RULE_REMOVED_STILL_REFERENCED = declare(
    "rule-removed-still-referenced",
    Severity.ERROR,
    "A rule that the stored ruleset has is gone, and another rule still invalidates it. Stands in place of "
    "`dangling-invalidate-reference`; checked when a ruleset is written or restored, not by validate.",
)
_SHOWN_REFERRERS: Final = 10


@RULE_REMOVED_STILL_REFERENCED.check(RemovedRule)
def check_removed(node: RemovedRule, _context: Context) -> Iterator[Problem]:
    """Removing a rule must not leave references to it behind."""
    if node.references:
        names = list(dict.fromkeys(reference.referrer for reference in node.references))
        shown = ", ".join(islice(names, _SHOWN_REFERRERS))
        more = f" and {len(names) - _SHOWN_REFERRERS} more" if len(names) > _SHOWN_REFERRERS else ""
        yield Problem(
            node.references[0].path,
            f"The rule {show_text(node.id)} was removed but is still named in invalidateRules "
            f"of {shown}{more}: keep it, or remove the references.",
            subject=node.id,
        )
