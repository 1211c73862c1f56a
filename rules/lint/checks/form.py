"""The form of a ruleset and its rules: properties, types, ranges and ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from rules.conditions.keys import IGNORE_CASE, Kind, Operator, describe_shape, find_wrong_elements
from rules.conditions.patterns import MAX_GLOB, MAX_GLOBS, MAX_PATTERN
from rules.json_text import (
    has_forbidden_characters,
    is_array,
    is_number,
    is_object,
    name_type,
    read_integer,
    show_text,
    show_value,
)
from rules.language import READ_ONLY_PROPERTIES, RULE_FIELDS, Action, FieldType
from rules.lint.finding import Severity
from rules.lint.nodes import RULE_ID, Combinator, Group, Operation, Operators, Root, RuleList, RuleNode
from rules.lint.registry import Context, Problem, declare
from rules.lint.spelling import ask_nearest

if TYPE_CHECKING:
    from rules.json_text import Path

UNKNOWN_PROPERTY = declare(
    "unknown-property",
    Severity.ERROR,
    "The ruleset or a rule has a property that does not exist.",
)
_TOP_LEVEL: Final = ("rules", *READ_ONLY_PROPERTIES)


@UNKNOWN_PROPERTY.check(Root)
def check_unknown_property_of_document(node: Root, context: Context) -> Iterator[Problem]:
    """Allow only the known properties of a ruleset."""
    for name in node.value:
        if name not in _TOP_LEVEL:
            nearest = context.suggester.find_nearest(name, _TOP_LEVEL)
            hint = ask_nearest(nearest, otherwise=f"; it has {', '.join(_TOP_LEVEL)}.")
            yield Problem((name,), f"A ruleset has no property {show_text(name)}{hint}", nearest)


@UNKNOWN_PROPERTY.check(RuleNode)
def check_unknown_property_of_rule(node: RuleNode, context: Context) -> Iterator[Problem]:
    """Allow only the known properties of a rule."""
    for name in node.fields:
        if name not in RULE_FIELDS:
            nearest = context.suggester.find_nearest(name, RULE_FIELDS)
            yield Problem(
                (*node.path, name), f"A rule has no property {show_text(name)}{ask_nearest(nearest)}", nearest
            )


MISSING_PROPERTY = declare(
    "missing-property",
    Severity.ERROR,
    "A rule lacks its `id`, or a condition key has an object without an operator.",
)
_REQUIRED: Final = [field for field in RULE_FIELDS.values() if field.required]


@MISSING_PROPERTY.check(RuleNode)
def check_missing_property_of_rule(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Require the mandatory fields of a rule."""
    if is_object(node.value):
        for field in _REQUIRED:
            if field.name not in node.fields:
                yield Problem((*node.path, field.name), f"A rule must have {field.type} as its {field.name}.")


@MISSING_PROPERTY.check(Operators)
def check_missing_property_of_operators(node: Operators, _context: Context) -> Iterator[Problem]:
    """Require an operator. An object without one would match everything."""
    if not node.value.keys() - {IGNORE_CASE}:
        yield Problem(
            node.path,
            f'{node.key.name} has no operator: write a value, or an operator such as {{"exists": true}}.',
        )


WRONG_TYPE = declare("wrong-type", Severity.ERROR, "A value has the wrong JSON type.")

_FITS: Final[dict[FieldType, Callable[[object], bool]]] = {
    FieldType.STRING: lambda value: isinstance(value, str),
    FieldType.BOOLEAN: lambda value: isinstance(value, bool),
    FieldType.INTEGER: lambda value: read_integer(value) is not None,
    FieldType.OBJECT: is_object,
    FieldType.IDS: is_array,
    FieldType.COLUMNS: is_array,
}
_FIELD_FITS: Final = {name: _FITS[field.type] for name, field in RULE_FIELDS.items()}


@WRONG_TYPE.check(Root)
def check_wrong_type_of_document(node: Root, _context: Context) -> Iterator[Problem]:
    """Check the types of the read-only properties."""
    for name, field_type in READ_ONLY_PROPERTIES.items():
        if name in node.value and not _FITS[field_type](value := node.value[name]):
            yield Problem((name,), f"{name} must be {field_type}, not {_name_actual_type(value)}.")


@WRONG_TYPE.check(RuleNode)
def check_wrong_type_of_rule(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Check the types of a rule and of its fields."""
    if not is_object(node.value):
        yield Problem(node.path, f"A rule must be an object, not {name_type(node.value)}.")
    for name, value in node.fields.items():
        if (fits := _FIELD_FITS.get(name)) is not None and not fits(value):
            expected = RULE_FIELDS[name].type
            yield Problem((*node.path, name), f"{name} must be {expected}, not {_name_actual_type(value)}.")
    for index, target in enumerate(node.targets):
        if not isinstance(target, str):
            yield Problem(
                (*node.path, "invalidateRules", index),
                f"An element of invalidateRules must be the id of a rule, not {name_type(target)}.",
            )
    for index, column in enumerate(node.vary_by):
        if not isinstance(column, str):
            yield Problem(
                (*node.path, "varyBy", index),
                f"An element of varyBy must be the name of a column, not {name_type(column)}.",
            )


def _name_actual_type(value: object) -> str:
    return "a number with a fraction" if isinstance(value, float) and value % 1 else name_type(value)


@WRONG_TYPE.check(Group)
def check_wrong_type_of_group(node: Group, _context: Context) -> Iterator[Problem]:
    """Require that conditions are an object."""
    if not is_object(node.value):
        yield Problem(node.path, f"Conditions must be an object, not {name_type(node.value)}.")


@WRONG_TYPE.check(Combinator)
def check_wrong_type_of_combinator(node: Combinator, _context: Context) -> Iterator[Problem]:
    """Require that ``all`` and ``any`` have an array."""
    if not is_array(node.value):
        yield Problem(
            node.path, f"{node.path[-1]} must be an array of condition objects, not {name_type(node.value)}."
        )


@WRONG_TYPE.check(Operators)
def check_wrong_type_of_operators(node: Operators, _context: Context) -> Iterator[Problem]:
    """Require that ``ignoreCase`` is a boolean."""
    value = node.value.get(IGNORE_CASE, False)
    if not isinstance(value, bool):
        yield Problem((*node.path, IGNORE_CASE), f"{IGNORE_CASE} must be a boolean, not {name_type(value)}.")


@WRONG_TYPE.check(Operation)
def check_wrong_type_of_operand(node: Operation, _context: Context) -> Iterator[Problem]:
    """Check the type of an operand, which depends on its operator and key."""
    if not node.fits:
        return
    wrong_elements = find_wrong_elements(node.key, node.operator, node.operand)
    if wrong_elements is None:
        expected = describe_shape(node.key, node.operator)
        key = node.key.name
        # A plain value has no operator in the text.
        test = key if node.path[-1] == key else f"{node.operator} on {key}"
        yield Problem(node.path, f"{test} takes {expected}, not {name_type(node.operand)}." + _hint(node))
    for index in wrong_elements or ():
        element = node.operand[index] if is_array(node.operand) else None
        expected = describe_shape(node.key, node.operator).rpartition("array of ")[2]
        yield Problem(
            (*node.path, index),
            f"{node.operator} on {node.key.name} takes only {expected}, not {name_type(element)}.",
        )


def _hint(node: Operation) -> str:
    if node.operator is not Operator.EQ:
        return ""
    if node.operand is None:
        return ' To match null, write {"exists": false}.'
    return ' To match one of several values, write {"in": [...]}.' if is_array(node.operand) else ""


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
def check_out_of_range_of_document(node: Root, _context: Context) -> Iterator[Problem]:
    """Check the read-only properties, which a client may send back."""
    seq = read_integer(node.value.get("seq"))
    if seq is not None and seq < 0:
        yield Problem(("seq",), f"seq counts from 0; it is {show_value(seq)}.")
    tenant_id = node.value.get("tenantId")
    if isinstance(tenant_id, str) and _UUID.fullmatch(tenant_id) is None:
        yield Problem(("tenantId",), f"tenantId must be a UUID, not {show_text(tenant_id)}.")


@OUT_OF_RANGE.check(RuleNode, names=["action", "ttlSeconds", "varyBy", "name", "description"])
def check_out_of_range_of_rule(node: RuleNode, context: Context) -> Iterator[Problem]:
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
def check_out_of_range_of_operand(node: Operation, _context: Context) -> Iterator[Problem]:
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


DUPLICATE_RULE_ID = declare("duplicate-rule-id", Severity.ERROR, "An earlier rule has the same `id`.")


@DUPLICATE_RULE_ID.check(RuleList)
def check_duplicate_rule_id(node: RuleList, _context: Context) -> Iterator[Problem]:
    """Require unique ids: logs, markers and references identify rules by them."""
    for rule in node.rules:
        if rule.id is not None and (first := node.by_id[rule.id]) is not rule:
            yield Problem(
                (*rule.path, "id"), f"Rule {first.index + 1} in the list already has the id {rule.id}."
            )


INVALID_RULE_ID = declare(
    "invalid-rule-id",
    Severity.ERROR,
    "An `id` has characters other than ASCII letters, digits, `.`, `_` and `-`, does not start with "
    "a letter or a digit, or has more than 128 characters.",
)


@INVALID_RULE_ID.check(RuleNode, names=["id"])
def check_invalid_rule_id(node: RuleNode, _context: Context) -> Iterator[Problem]:
    """Limit the characters of ids, because ids are used in logs, file names and URLs."""
    rule_id = node.fields.get("id")
    if isinstance(rule_id, str) and node.id is None:
        yield Problem((*node.path, "id"), f"The id {show_text(rule_id)} must match ^{RULE_ID.pattern}$.")
