"""``unknown-property``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rules.json_text import show_text
from rules.language import READ_ONLY_PROPERTIES, RULE_FIELDS
from rules.lint.finding import Severity
from rules.lint.nodes import Root, RuleNode
from rules.lint.registry import Context, Problem, declare
from rules.lint.spelling import ask_nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

UNKNOWN_PROPERTY = declare(
    "unknown-property",
    Severity.ERROR,
    "The ruleset or a rule has a property that does not exist.",
)
_TOP_LEVEL: Final = ("rules", *READ_ONLY_PROPERTIES)


@UNKNOWN_PROPERTY.check(Root)
def check_document(node: Root, context: Context) -> Iterator[Problem]:
    """Allow only the known properties of a ruleset."""
    for name in node.value:
        if name not in _TOP_LEVEL:
            nearest = context.suggester.find_nearest(name, _TOP_LEVEL)
            hint = ask_nearest(nearest, otherwise=f"; it has {', '.join(_TOP_LEVEL)}.")
            yield Problem((name,), f"A ruleset has no property {show_text(name)}{hint}", nearest)


@UNKNOWN_PROPERTY.check(RuleNode)
def check_rule(node: RuleNode, context: Context) -> Iterator[Problem]:
    """Allow only the known properties of a rule."""
    for name in node.fields:
        if name not in RULE_FIELDS:
            nearest = context.suggester.find_nearest(name, RULE_FIELDS)
            yield Problem(
                (*node.path, name), f"A rule has no property {show_text(name)}{ask_nearest(nearest)}", nearest
            )
