"""``caches-non-deterministic``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import SoundRule
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

CACHES_NON_DETERMINISTIC = declare(
    "caches-non-deterministic",
    Severity.WARNING,
    "A cache rule picks out statements that call non-deterministic functions.",
)
_KEY: Final = ("hasNonDeterministicFunctions",)


@CACHES_NON_DETERMINISTIC.check(SoundRule)
def check_rule(node: SoundRule, _context: Context) -> Iterator[Problem]:
    """What differs at every call is not served from a cache unnoticed."""
    if node.rule.action is Action.CACHE:
        for path in node.find_keys(_KEY, lambda literal: literal.accepts_only(boolean=True)):
            yield Problem(
                path,
                "What a non-deterministic function gives differs at every call; the cache repeats one.",
            )
