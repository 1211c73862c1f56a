"""``invalid-regex``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rules.conditions.keys import Operator
from rules.conditions.patterns import MAX_PATTERN, InvalidRegex, compile_regex
from rules.lint.finding import Severity, encodable
from rules.lint.nodes import Operation
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

INVALID_REGEX = declare(
    "invalid-regex", Severity.ERROR, "A pattern is not valid RE2, or is too large when compiled."
)

#: Maximum number of instructions of all compiled patterns of a ruleset: 0.3 s of compiling.
_MAX_COMPILED_SIZE: Final = 800_000
#: The number of instructions that count for a pattern that does not compile.
_FAILED_SIZE: Final = 8_000


@INVALID_REGEX.check(Operation, names=[Operator.REGEX])
def check_operation(node: Operation, context: Context) -> Iterator[Problem]:
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
