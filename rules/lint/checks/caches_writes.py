"""``caches-writes``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rules.conditions.operators import Operator
from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import SoundRule
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rules.conditions.normal import Literal

CACHES_WRITES = declare(
    "caches-writes", Severity.WARNING, "A cache rule picks out statements that change data or the schema."
)

#: The value that marks a writing statement, by key.
_WRITING: Final = {"isReadOnly": False, "isDataChange": True, "isDDL": True}
_KEYS: Final = ("statementType", *_WRITING)
_WRITING_TYPES: Final = frozenset(
    {
        "INSERT",
        "UPDATE",
        "DELETE",
        "MERGE",
        "UPSERT",
        "REPLACE",
        "TRUNCATE",
        "COPY",
        "CREATE",
        "ALTER",
        "DROP",
        "GRANT",
        "REVOKE",
    }
)


@CACHES_WRITES.check(SoundRule)
def check_rule(node: SoundRule, _context: Context) -> Iterator[Problem]:
    """A write served from the cache has not happened."""
    if node.rule.action is Action.CACHE:
        for path in node.find_keys(_KEYS, _picks_writes):
            yield Problem(
                path, "A statement that writes must reach the warehouse; served from the cache it does not."
            )


def _picks_writes(literal: Literal) -> bool:
    test = literal.test
    if test.key.name in _WRITING:
        return literal.accepts_only(boolean=_WRITING[test.key.name])
    if literal.negated or test.operator not in {Operator.EQ, Operator.IN}:
        return False
    return any(text.upper() in _WRITING_TYPES for text in test.texts)
