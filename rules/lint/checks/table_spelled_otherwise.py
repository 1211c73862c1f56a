"""``table-spelled-otherwise``."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from rules.conditions.keys import Operator
from rules.json_text import show_text
from rules.lint import limits
from rules.lint.finding import Severity
from rules.lint.nodes import RuleList
from rules.lint.registry import Context, Problem, declare
from rules.lint.spelling import MAX_NAMED, find_other_spellings
from rules.tables.names import Likeness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rules.lint.spelling import OtherSpellings
    from rules.tables.warehouse import WarehouseTables

TABLE_SPELLED_OTHERWISE = declare(
    "table-spelled-otherwise",
    Severity.WARNING,
    "The log of the last 28 days spells a table in a way that a negative condition, or an earlier bypass or "
    "deny rule, does not match. Checked by write and restore, and in drafts, not by validate.",
)
#: The operators that take one name, and those that take several.
_SEVERAL: Final = {Operator.EQ: Operator.IN, Operator.NE: Operator.NOT_IN}


@TABLE_SPELLED_OTHERWISE.check(RuleList)
def check_ruleset(node: RuleList, context: Context) -> Iterator[Problem]:
    """Warn about tables that are kept out of the cache in some of their spellings only."""
    if not node.tables.logged:
        return
    is_late = partial(context.has_used, limits.WARNINGS_SECONDS)
    for found in find_other_spellings(node.valid, node.tables, is_late=is_late):
        yield Problem(
            found.rule.key_path(found.test),
            f"The log of the last 28 days {_describe_names(found, node.tables)}. Conditions compare text, so "
            f"this one does not match. {_describe_cure(found)}",
        )
    if is_late():
        context.incomplete += [rule.rule.path for rule in node.valid[:1]]


def _describe_names(found: OtherSpellings, warehouse: WarehouseTables) -> str:
    said = []
    for name, text in islice(found.names.items(), MAX_NAMED):
        likeness = warehouse.pattern(text).compare(warehouse.read(name))
        meant = "is" if likeness is Likeness.SAME else "may be"
        said.append(f"names {show_text(name)}, which {meant} {show_text(text)}")
    return "; ".join(said) + ("; and more such names" if len(found.names) > MAX_NAMED else "")


def _describe_cure(found: OtherSpellings) -> str:
    if found.differ_by_case:
        return 'Write "ignoreCase": true beside the operator.'
    names = ", ".join(show_text(name) for name in islice(found.names, MAX_NAMED))
    several = _SEVERAL.get(found.test.operator)
    return f"Add {names} to its names{f', with the operator {several}' if several else ''}."
