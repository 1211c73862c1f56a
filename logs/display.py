"""Print a query's result as a table, or as a block per row if the terminal is too narrow for a table."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from logs.sql.values import as_text, json_values
from tenantadmin.lib.terminal import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from logs.sql.protocol import QueryResult

_NULL: Final = ("NULL", "dim")
#: Width of a table's column besides its text: a line, and a space on either side.
_COLUMN_BORDER: Final = 3


def print_result(console: Console, result: QueryResult) -> None:
    """Print the rows. Control characters are shown as escapes, and cells are neither cut nor wrapped.

    Output that is not a terminal is always a table.
    """
    headings = [(visible(column.name), visible(column.type)) for column in result.columns]
    cells = [
        [_cell(value) for batch in result.batches for value in json_values(batch.column(index))]
        for index in range(len(headings))
    ]
    width = 1 + sum(
        _COLUMN_BORDER + max(cell_len(text) for text in (*heading, *(text for text, _ in column)))
        for heading, column in zip(headings, cells, strict=True)
    )
    if console.is_terminal and width > console.width and result.row_count:
        for block in _blocks([name for name, _ in headings], cells):
            console.print(block, soft_wrap=True)
    else:
        console.width = max(console.width, width)
        console.print(_table(headings, cells))


def _cell(value: Any) -> tuple[str, str]:
    """Return the text and style of a cell."""
    return _NULL if value is None else (visible(as_text(value)), "")


def _table(headings: Sequence[tuple[str, str]], cells: Sequence[Sequence[tuple[str, str]]]) -> Table:
    table = Table()
    for name, type_ in headings:
        table.add_column(Text.assemble(name, "\n", (type_, "dim")), no_wrap=True)
    if cells and cells[0]:
        # One cell with many lines per column takes rich a third of the time that many rows take.
        table.add_row(*(Text("\n").join(Text(*cell) for cell in column) for column in cells))
    return table


def _blocks(names: Sequence[str], cells: Sequence[Sequence[tuple[str, str]]]) -> Iterator[Text]:
    widest = max(map(cell_len, names))
    labels = [(name + " " * (widest - cell_len(name) + 2), "bold") for name in names]
    for number, record in zip(count(1), zip(*cells, strict=True)):
        lines = [Text.assemble(label, cell) for label, cell in zip(labels, record, strict=True)]
        yield Text("\n").join([Text(f"── record {number}", "dim"), *lines])
