"""``spoofable-condition``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rules.conditions.keys import CONDITION_KEYS
from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import ValidRule
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

SPOOFABLE_CONDITION = declare(
    "spoofable-condition",
    Severity.WARNING,
    "A deny rule depends on a header that the caller can forge (`userAgent`, `host`, `origin`, `referer`).",
)
_HEADERS: Final = [key.name for key in CONDITION_KEYS.values() if key.caller_supplied]


@SPOOFABLE_CONDITION.check(ValidRule)
def check_rule(node: ValidRule, _context: Context) -> Iterator[Problem]:
    """Warn that callers can avoid a deny rule by sending another header."""
    if node.rule.action is Action.DENY:
        for path in node.find_keys(_HEADERS, lambda _literal: True):
            yield Problem(
                path, f"The caller sets {path[-1]}: with another value, this deny rule does not match."
            )
