"""The form of conditions: keys, operators, patterns, networks and depth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rules.conditions.keys import (
    COMBINATORS,
    CONDITION_KEYS,
    IGNORE_CASE,
    MAX_DEPTH,
    OPERATOR_ALIASES,
    OPERATORS,
    Kind,
    Operator,
    find_operator,
)
from rules.conditions.patterns import MAX_PATTERN, InvalidCidr, InvalidRegex, compile_regex, parse_network
from rules.json_text import is_array, is_object, show_text
from rules.lint.finding import Severity, encodable
from rules.lint.nodes import Group, Operation, Operators
from rules.lint.registry import Context, Problem, declare
from rules.lint.spelling import ask_nearest

if TYPE_CHECKING:
    from rules.json_text import Path

UNKNOWN_CONDITION_KEY = declare(
    "unknown-condition-key",
    Severity.ERROR,
    "A condition key does not exist. If it were ignored, a misspelled key would match everything.",
)
_KNOWN_KEYS: Final = (*CONDITION_KEYS, *COMBINATORS)


@UNKNOWN_CONDITION_KEY.check(Group)
def check_unknown_condition_key(node: Group, context: Context) -> Iterator[Problem]:
    """Allow only condition keys and combinators."""
    if not is_object(node.value) or node.depth > MAX_DEPTH:
        return
    for name in node.value:
        if name not in CONDITION_KEYS and name not in COMBINATORS:
            nearest = context.suggester.find_nearest(name, _KNOWN_KEYS)
            hint = ask_nearest(nearest, otherwise="; docs/rules.md lists them.")
            yield Problem((*node.path, name), f"There is no condition key {show_text(name)}{hint}", nearest)


UNKNOWN_OPERATOR = declare(
    "unknown-operator", Severity.ERROR, "A condition key has an operator that does not exist."
)
_KNOWN_OPERATORS: Final = (*(operator.value for operator in Operator), IGNORE_CASE)


@UNKNOWN_OPERATOR.check(Operators)
def check_unknown_operator(node: Operators, context: Context) -> Iterator[Problem]:
    """Allow only operators and ``ignoreCase``."""
    for name in node.value:
        if name == IGNORE_CASE or find_operator(name) is not None:
            continue
        alias = OPERATOR_ALIASES.get(name.lower())
        nearest = alias.value if alias is not None else context.suggester.find_nearest(name, _KNOWN_OPERATORS)
        hint = ask_nearest(nearest, otherwise=f"; the operators are {', '.join(_KNOWN_OPERATORS)}.")
        yield Problem((*node.path, name), f"There is no operator {show_text(name)}{hint}", nearest)


OPERATOR_TYPE_MISMATCH = declare(
    "operator-type-mismatch",
    Severity.ERROR,
    "An operator does not fit its key: a text operator on a number, or `cidr` on a name.",
)
_KIND_NAMES: Final = {
    Kind.TEXT: "text",
    Kind.NUMBER: "a number",
    Kind.BOOL: "a boolean",
    Kind.TABLES: "a list of table names",
    Kind.IP: "an address",
}


@OPERATOR_TYPE_MISMATCH.check(Operation)
def check_operator_type_mismatch_of_operation(node: Operation, _context: Context) -> Iterator[Problem]:
    """Require operators that fit the kind of the key."""
    if not node.fits:
        fitting = [operator for operator, spec in OPERATORS.items() if node.key.kind in spec.kinds]
        yield Problem(
            node.path,
            f"{node.operator} does not fit {node.key.name}, which is {_KIND_NAMES[node.key.kind]}: "
            f"use {', '.join(fitting)}.",
        )


@OPERATOR_TYPE_MISMATCH.check(Operators)
def check_operator_type_mismatch_of_operators(node: Operators, _context: Context) -> Iterator[Problem]:
    """Allow ``ignoreCase`` only for texts."""
    if IGNORE_CASE in node.value and not node.key.is_textual:
        yield Problem(
            (*node.path, IGNORE_CASE),
            f"{IGNORE_CASE} does not fit {node.key.name}, which is {_KIND_NAMES[node.key.kind]}.",
        )


INVALID_REGEX = declare(
    "invalid-regex", Severity.ERROR, "A pattern is not valid RE2, or is too large when compiled."
)

#: Maximum number of instructions of all compiled patterns of a ruleset: 0.3 s of compiling.
_MAX_COMPILED_SIZE: Final = 800_000
#: The number of instructions that count for a pattern that does not compile.
_FAILED_SIZE: Final = 8_000


@INVALID_REGEX.check(Operation, names=[Operator.REGEX])
def check_invalid_regex(node: Operation, context: Context) -> Iterator[Problem]:
    """Require patterns that compile."""
    pattern = node.operand
    if node.fits and isinstance(pattern, str) and len(pattern) <= MAX_PATTERN:
        problem = _find_problem(pattern, ignore_case=node.ignore_case, context=context)
        if problem is not None:
            yield Problem(node.path, f"The pattern does not compile as RE2: {problem}.")


def _find_problem(pattern: str, *, ignore_case: bool, context: Context) -> str | None:
    key = (pattern, ignore_case)
    if key not in context.patterns:
        context.patterns[key] = _compile(pattern, ignore_case=ignore_case, context=context)
    return context.patterns[key]


def _compile(pattern: str, *, ignore_case: bool, context: Context) -> str | None:
    if context.compiled_size > _MAX_COMPILED_SIZE:
        return "the patterns before it have used up the limit of one ruleset"
    try:
        context.compiled_size += compile_regex(pattern, ignore_case=ignore_case).size
    except InvalidRegex as error:
        context.compiled_size += _FAILED_SIZE
        return encodable(str(error))
    return None


INVALID_CIDR = declare(
    "invalid-cidr", Severity.ERROR, "A text is not a network such as `10.0.0.0/8` or `2001:db8::/32`."
)


@INVALID_CIDR.check(Operation, names=[Operator.CIDR])
def check_invalid_cidr(node: Operation, _context: Context) -> Iterator[Problem]:
    """Require valid networks."""
    if not node.fits:
        return
    if is_array(node.operand):
        for index, element in enumerate(node.operand):
            yield from _check_network(element, (*node.path, index))
    else:
        yield from _check_network(node.operand, node.path)


def _check_network(text: object, path: Path) -> Iterator[Problem]:
    if not isinstance(text, str):
        return
    try:
        parse_network(text)
    except InvalidCidr as error:
        problem = encodable(str(error))
        yield Problem(path, f"{show_text(text)} is not a network: it {problem}.", error.suggestion)


CONDITIONS_TOO_DEEP = declare(
    "conditions-too-deep",
    Severity.ERROR,
    f"`all`, `any` and `not` are nested more than {MAX_DEPTH} levels deep.",
)


@CONDITIONS_TOO_DEEP.check(Group)
def check_conditions_too_deep(node: Group, _context: Context) -> Iterator[Problem]:
    """Limit nesting. Report the first object beyond the limit, without looking into it."""
    if node.depth > MAX_DEPTH:
        yield Problem(
            node.path, f"all, any and not may be nested {MAX_DEPTH} levels deep; this is one level more."
        )
