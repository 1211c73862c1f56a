"""Tables in the preview of an invalidation: what its sentences call them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rules.table_invalidation import named_tables, names_table
from tenantadmin.lib.core.formats import count, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rules.language import Rule
    from rules.tables.warehouse import WarehouseTables

#: The most tables of a rule that a preview names.
_MAX_NAMED: Final = 3


def name_tables(tables: Sequence[str]) -> str:
    """Return what a sentence calls the tables."""
    return tables[0] if len(tables) == 1 else "these tables"


def say_why(
    rule: Rule,
    *,
    entries: int,
    read: int | None,
    ever_read: int | None,
    tables: Sequence[str],
    warehouse: WarehouseTables,
) -> str:
    """Say what the results of a rule have to do with tables. ``read`` is None if they were not counted."""
    what = name_tables(tables)
    if not read:
        cached = f"result of {what}, only {count(entries, 'other')}" if entries else "cached result"
        named = named_tables(rule)
        if names_table(rule, tables, warehouse):
            reason = f"Its conditions name {what if len(tables) == 1 else 'one of them'}."
        elif ever_read:
            return f"By the log, its statements read {what}, but it now has no {cached}."
        elif named:
            shown = ", ".join([*named[:_MAX_NAMED], *(["…"] if len(named) > _MAX_NAMED else [])])
            reason = f"It is for {shown}; a statement may read {what} too."
        else:
            reason = f"It is not limited to certain tables, so it may have results of {what}."
        if read is None:
            return reason
        return f"{reason} By the log, it has no {cached}."
    others = entries - read
    reads = f"{'reads' if read == 1 else 'read'} {what}."
    if not others:
        return f"Its one result {reads}" if read == 1 else f"All {number(read)} of its results {reads}"
    also = f"The other {number(others)} {'ends' if others == 1 else 'end'} too."
    return f"{number(read)} of its {number(entries)} results {reads} {also}"
