"""``wrong-type``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rules.conditions.keys import IGNORE_CASE, Operator, describe_shape, find_wrong_elements
from rules.json_text import is_array, is_object, name_type, read_integer
from rules.language import READ_ONLY_PROPERTIES, RULE_FIELDS, FieldType
from rules.lint.finding import Severity
from rules.lint.nodes import Combinator, Group, Operation, Operators, Root, RuleNode
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
def check_document(node: Root, _context: Context) -> Iterator[Problem]:
    """Check the types of the read-only properties."""
    for name, field_type in READ_ONLY_PROPERTIES.items():
        if name in node.value and not _FITS[field_type](value := node.value[name]):
            yield Problem((name,), f"{name} must be {field_type}, not {_name_actual_type(value)}.")


@WRONG_TYPE.check(RuleNode)
def check_rule(node: RuleNode, _context: Context) -> Iterator[Problem]:
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
def check_group(node: Group, _context: Context) -> Iterator[Problem]:
    """Require that conditions are an object."""
    if not is_object(node.value):
        yield Problem(node.path, f"Conditions must be an object, not {name_type(node.value)}.")


@WRONG_TYPE.check(Combinator)
def check_combinator(node: Combinator, _context: Context) -> Iterator[Problem]:
    """Require that ``all`` and ``any`` have an array."""
    if not is_array(node.value):
        yield Problem(
            node.path, f"{node.path[-1]} must be an array of condition objects, not {name_type(node.value)}."
        )


@WRONG_TYPE.check(Operators)
def check_operators(node: Operators, _context: Context) -> Iterator[Problem]:
    """Require that ``ignoreCase`` is a boolean."""
    value = node.value.get(IGNORE_CASE, False)
    if not isinstance(value, bool):
        yield Problem((*node.path, IGNORE_CASE), f"{IGNORE_CASE} must be a boolean, not {name_type(value)}.")


@WRONG_TYPE.check(Operation)
def check_operand(node: Operation, _context: Context) -> Iterator[Problem]:
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
