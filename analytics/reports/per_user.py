"""Statements that read tables which differ per user, in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rules.tables.names import counts_sql, names_sql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rules.tables.warehouse import WarehouseTables


def reads_tables_sql(patterns: Sequence[str], warehouse: WarehouseTables) -> str:
    """Return SQL for rows of ``proxy_logs`` that read one of the tables, or may, however it is spelled."""
    if not patterns:
        return "false"
    counts = counts_sql(map(warehouse.pattern, patterns), "name")
    names = names_sql('"tables"', database=warehouse.database)
    return f"coalesce(len(list_filter({names}, lambda name: {counts})) > 0, false)"
