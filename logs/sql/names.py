"""The name of the view, and names as DuckDB compares them."""

from __future__ import annotations

from typing import Final

#: The only view or table that a query may read.
LOG_VIEW: Final = "proxy_logs"

_ASCII_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def fold(name: str) -> str:
    """Fold case as DuckDB does: ASCII letters only."""
    return name.translate(_ASCII_LOWER)
