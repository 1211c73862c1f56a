"""``caches-writes``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rules.conditions.keys import Operator
from rules.language import Action
from rules.lint.finding import Severity
from rules.lint.nodes import ValidRule
from rules.lint.registry import Context, Problem, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rules.conditions.normal import Literal

CACHES_WRITES = declare(
    "caches-writes",
    Severity.WARNING,
    "A cache rule selects statements that change data or the schema.",
    hurts=True,
)

#: By key, the value of a statement that writes.
_WRITING_VALUES: Final = {"isReadOnly": False, "isDataChange": True, "isDDL": True}
_KEYS: Final = ("statementType", *_WRITING_VALUES)
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


@CACHES_WRITES.check(ValidRule)
def check_rule(node: ValidRule, _context: Context) -> Iterator[Problem]:
    """Warn about caching statements that write: from the cache, they would have no effect."""
    if node.rule.action is Action.CACHE:
        selecting = node.find_keys(_KEYS, _selects_writes)
        for path in [node.path] if node.matches_everything else selecting:
            yield Problem(path, "A statement that writes has no effect if it is served from the cache.")


def _selects_writes(literal: Literal) -> bool:
    test = literal.test
    if test.key.name in _WRITING_VALUES:
        return literal.accepts_only(boolean=_WRITING_VALUES[test.key.name])
    if literal.negated or test.operator not in {Operator.EQ, Operator.IN}:
        return False
    return any(text.upper() in _WRITING_TYPES for text in test.texts)
