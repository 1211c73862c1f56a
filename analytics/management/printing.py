"""What several commands print: bounds, the warehouse's bill, and how far work is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from logs.layout import HOUR_MS
from tenantadmin.lib.core.formats import money_between


def show_range(bounds: Mapping[str, Any], *, form: str = "") -> str:
    """Return bounds as text: ``9..12``, or ``9`` if both are equal. ``form`` formats each number."""
    low, high = bounds["low"], bounds["high"]
    return f"{low:{form}}" if low == high else f"{low:{form}}..{high:{form}}"


def show_bill(billed: Mapping[str, Any]) -> str:
    """Show what is billed, in hours, and in money if a price is known: ``2.5 h, 7.50 USD``."""
    hours = show_range({name: round(value / HOUR_MS, 1) for name, value in billed["billedMs"].items()})
    money = billed["money"]
    cost = money and money_between((money["low"], money["high"]), money["currency"])
    return f"{hours} h, {cost}" if cost else f"{hours} h"


def progress_bar(*, only_on_terminal: bool = False) -> Progress:
    """Return a bar on stderr that counts what is done. Elsewhere than on a terminal its end is printed."""
    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, disable=only_on_terminal and not console.is_terminal)
