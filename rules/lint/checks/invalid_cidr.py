"""``invalid-cidr``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.conditions.keys import Operator
from rules.conditions.patterns import InvalidCidr, parse_network
from rules.json_text import is_array, show_text
from rules.lint.finding import Severity, encodable
from rules.lint.nodes import Operation
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rules.json_text import Path

INVALID_CIDR = declare(
    "invalid-cidr", Severity.ERROR, "A text is not a network such as `10.0.0.0/8` or `2001:db8::/32`."
)


@INVALID_CIDR.check(Operation, names=[Operator.CIDR])
def check_operation(node: Operation, _context: Context) -> Iterator[Problem]:
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
