"""``per-user-table-shared``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rules.json_text import show_text
from rules.lint import limits
from rules.lint.finding import Severity
from rules.lint.nodes import RuleList
from rules.lint.registry import Context, Problem, declare
from rules.lint.sharing import find_shared

if TYPE_CHECKING:
    from collections.abc import Iterator

PER_USER_TABLE_SHARED = declare(
    "per-user-table-shared",
    Severity.ERROR,
    "A cache rule can decide a statement that reads a table of `warehouse.perUserTables`, and its results do "
    "not vary by user. Checked by write and restore, not by validate.",
)


@PER_USER_TABLE_SHARED.check(RuleList)
def check_ruleset(node: RuleList, context: Context) -> Iterator[Problem]:
    """Refuse rules that would serve the rows of one user to another."""
    is_late = partial(context.has_used, limits.WARNINGS_SECONDS)
    for rule, tables, is_certain in find_shared(node.valid, node.tables, is_late=is_late):
        shown = ", ".join(show_text(table) for table in tables)
        bypass = '{"tables": {"containsAny": [' + shown + '], "ignoreCase": true}}'
        claim = (
            "All users share the results of this rule, which can decide"
            if is_certain
            else "All users share the results of this rule, and there was no time to exclude that it decides"
        )
        yield Problem(
            (*rule.rule.path, "varyBy") if "varyBy" in rule.rule.fields else rule.rule.path,
            f"{claim} statements that read {shown}, which differ per user. Add userName to varyBy, or put a "
            f"bypass rule for {bypass} before this one.",
            "userName",
        )
