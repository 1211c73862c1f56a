"""``out-of-range``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rules.conditions.keys import Kind, Operator
from rules.conditions.patterns import MAX_GLOB, MAX_GLOBS, MAX_PATTERN
from rules.json_text import (
    has_forbidden_characters,
    is_array,
    is_number,
    read_integer,
    show_text,
    show_value,
)
from rules.language import RULE_FIELDS, Action
from rules.lint.finding import Severity
from rules.lint.nodes import Operation, Root, RuleNode
from rules.lint.registry import Context, Problem, declare
from rules.lint.spelling import ask_nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rules.json_text import Path

OUT_OF_RANGE = declare(
    "out-of-range",
    Severity.ERROR,
    "A value has the right type but is not allowed, such as a number outside of its bounds.",
)

_ACTIONS: Final = tuple(Action)
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
#: The largest integer that all JSON parsers read exactly.
_MAX_NUMBER: Final = 2**53
_FORBIDDEN: Final = "contains NUL or an unpaired surrogate, which the log cannot store"


@OUT_OF_RANGE.check(Root)
def check_document(node: Root, _context: Context) -> Iterator[Problem]:
    """Check the read-only properties, which a client may send back."""
    seq = read_integer(node.value.get("seq"))
    if seq is not None and seq < 0:
        yield Problem(("seq",), f"seq counts from 0; it is {show_value(seq)}.")
    tenant_id = node.value.get("tenantId")
    if isinstance(tenant_id, str) and _UUID.fullmatch(tenant_id) is None:
        yield Problem(("tenantId",), f"tenantId must be a UUID, not {show_text(tenant_id)}.")


@OUT_OF_RANGE.check(RuleNode, names=["action", "ttlSeconds", "varyBy", "name", "description"])
def check_rule(node: RuleNode, context: Context) -> Iterator[Problem]:
    """Check the TTL, the action and the characters of texts."""
    ttl, field = read_integer(node.fields.get("ttlSeconds")), RULE_FIELDS["ttlSeconds"]
    if ttl is not None and node.ttl_seconds is None:
        yield Problem(
            (*node.path, "ttlSeconds"),
            f"ttlSeconds must be {field.minimum} to {field.maximum}, not {show_value(ttl)}.",
        )
    action = node.fields.get("action")
    if isinstance(action, str) and node.action is None:
        nearest = context.suggester.find_nearest(action, _ACTIONS)
        hint = ask_nearest(nearest, otherwise=f"; the actions are {', '.join(_ACTIONS)}.")
        yield Problem((*node.path, "action"), f"There is no action {show_text(action)}{hint}", nearest)
    for index, column in enumerate(node.vary_by):
        if isinstance(column, str) and column in node.vary_by[:index]:
            yield Problem(
                (*node.path, "varyBy", index), f"varyBy names the column {show_text(column)} more than once."
            )
    for name in ("name", "description"):
        text = node.fields.get(name)
        if isinstance(text, str) and has_forbidden_characters(text):
            yield Problem((*node.path, name), f"{name} {_FORBIDDEN}.")


@OUT_OF_RANGE.check(Operation)
def check_operand(node: Operation, _context: Context) -> Iterator[Problem]:
    """Check the size of numbers, the length and number of patterns, and the characters of texts."""
    if is_array(node.operand):
        if node.operator in _GLOBS and len(node.operand) > MAX_GLOBS:
            yield Problem(
                node.path,
                f"{node.operator} takes at most {MAX_GLOBS:,} patterns, not {len(node.operand):,}. Use '*', "
                "or several tests in 'any' or 'all'.",
            )
        for index, element in enumerate(node.operand):
            yield from _check_scalar(node, element, (*node.path, index))
    else:
        yield from _check_scalar(node, node.operand, node.path)


_GLOBS: Final = frozenset({Operator.CONTAINS_ANY, Operator.CONTAINS_ALL})
_MAX_LENGTHS: Final = {
    Operator.REGEX: MAX_PATTERN,
    Operator.CONTAINS_ANY: MAX_GLOB,
    Operator.CONTAINS_ALL: MAX_GLOB,
}


def _check_scalar(node: Operation, value: object, path: Path) -> Iterator[Problem]:
    if node.key.kind is Kind.NUMBER and is_number(value) and abs(value) > _MAX_NUMBER:
        yield Problem(path, f"A number must be between -2^53 and 2^53; {show_value(value)} is not.")
    if not isinstance(value, str):
        return
    max_length = _MAX_LENGTHS.get(node.operator)
    if max_length is not None and len(value) > max_length:
        yield Problem(path, f"A pattern may have at most {max_length} characters; this one has {len(value)}.")
    if has_forbidden_characters(value):
        yield Problem(path, f"The text {_FORBIDDEN}.")
