from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from accounts.management.arguments import add_tenant
from logs.management.operators import OperatorCommand
from logs.queries import run_query
from logs.sql.results import as_text, csv_pieces, json_values, ndjson_pieces
from tenantadmin.lib.objectstore import default_store
from tenantadmin.lib.terminal import visible

if TYPE_CHECKING:
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


_WRITERS: Final = {"csv": csv_pieces, "ndjson": ndjson_pieces}


class Command(OperatorCommand):
    help = "Runs one SELECT over a tenant's proxy_logs, with the limits of the API, and prints the rows."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("statement", metavar="SELECT")
        add_tenant(parser)
        parser.add_argument(
            "--format",
            choices=["table", *_WRITERS],
            default="table",
            help="table (default) shows control characters as escapes; csv and ndjson are as in the API.",
        )

    def handle(self, *, statement: str, tenant: UUID, format: str, **_: Any) -> None:  # noqa: A002 - the option
        result = run_query(default_store(), tenant=tenant, statement=statement, reader=self.reader)
        console = Console(highlight=False)
        rows = "1 row" if result.row_count == 1 else f"{result.row_count} rows"
        truncated = ", truncated at the limit" if result.truncated else ""
        if format == "table":
            print_result(console, result)
            kept = ", kept from an earlier run" if result.is_kept else ""
            console.print(f"{rows} in {result.elapsed_ms} ms{kept}{truncated}", style="dim", soft_wrap=True)
            return
        _write(console, _WRITERS[format](result))
        if truncated:
            self.stderr.write(f"{rows}{truncated}")


def _write(console: Console, pieces: Iterator[bytes]) -> None:
    try:
        for piece in pieces:
            text = piece.decode()
            if console.is_terminal:
                text = "\n".join(visible(line.removesuffix("\r")) for line in text.split("\n"))
            console.file.write(text)
        console.file.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe. Exit as rich does when it prints a table.
        console.on_broken_pipe()
