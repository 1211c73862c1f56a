"""``caches-non-deterministic``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rules.dialects.words import find_time
from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import ValidRule
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

CACHES_NON_DETERMINISTIC = declare(
    "caches-non-deterministic",
    Severity.WARNING,
    "A cache rule selects statements that call non-deterministic functions or depend on the time.",
    hurts=True,
)
_KEY: Final = ("hasNonDeterministicFunctions",)


@CACHES_NON_DETERMINISTIC.check(ValidRule)
def check_rule(node: ValidRule, _context: Context) -> Iterator[Problem]:
    """Warn about caching statements whose results differ at every call."""
    if node.rule.action is not Action.CACHE:
        return
    selecting = node.find_keys(_KEY, lambda literal: literal.accepts_only(boolean=True))
    for path in [node.path] if node.matches_everything else selecting:
        yield Problem(
            path, "Non-deterministic functions give another result at every call; the cache repeats one."
        )
    for path, word in node.find_words(find_time):
        yield Problem(path, f"The result of {word} depends on the time; the cache repeats an earlier one.")
