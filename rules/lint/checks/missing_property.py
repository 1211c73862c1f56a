"""``missing-property``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rules.conditions.keys import IGNORE_CASE
from rules.json_text import is_object
from rules.language import RULE_FIELDS
from rules.lint.finding import Severity
from rules.lint.nodes import Operators, RuleNode
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

MISSING_PROPERTY = declare(
    "missing-property",
    Severity.ERROR,
    "A rule lacks its `id`, or a condition key has an object without an operator.",
)
_REQUIRED: Final = [field for field in RULE_FIELDS.values() if field.required]


@MISSING_PROPERTY.check(RuleNode)
def check_rule(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Require the mandatory fields of a rule."""
    if is_object(node.value):
        for field in _REQUIRED:
            if field.name not in node.fields:
                yield Problem((*node.path, field.name), f"A rule must have {field.type} as its {field.name}.")


@MISSING_PROPERTY.check(Operators)
def check_operators(node: Operators, _context: Context) -> Iterator[Problem]:
    """Require an operator. An object without one would match everything."""
    if not node.value.keys() - {IGNORE_CASE}:
        yield Problem(
            node.path,
            f'{node.key.name} has no operator: write a value, or an operator such as {{"exists": true}}.',
        )
