"""``unknown-condition-key``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rules.conditions.keys import COMBINATORS, CONDITION_KEYS, MAX_DEPTH
from rules.json_text import is_object, show_text
from rules.lint.finding import Severity
from rules.lint.nodes import Group
from rules.lint.registry import Context, Problem, declare
from rules.lint.spelling import ask_nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

UNKNOWN_CONDITION_KEY = declare(
    "unknown-condition-key",
    Severity.ERROR,
    "A condition key does not exist. If it were ignored, a misspelled key would match everything.",
)
_KNOWN: Final = (*CONDITION_KEYS, *COMBINATORS)


@UNKNOWN_CONDITION_KEY.check(Group)
def check_group(node: Group, context: Context) -> Iterator[Problem]:
    """Allow only condition keys and combinators."""
    if not is_object(node.value) or node.depth > MAX_DEPTH:
        return
    for name in node.value:
        if name not in CONDITION_KEYS and name not in COMBINATORS:
            nearest = context.suggester.find_nearest(name, _KNOWN)
            hint = ask_nearest(nearest, otherwise="; docs/rules.md lists them.")
            yield Problem((*node.path, name), f"There is no condition key {show_text(name)}{hint}", nearest)
