"""``manage.py sql --tenant ID 'SELECT …'``: one query over a tenant's log, as the API runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from logs.audit import Reader
from logs.queries import run_query
from logs.sql.values import as_text, json_values
from tenantadmin.http.errors import ApiError
from tenantadmin.objectstore import default_store

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from logs.sql.protocol import QueryResult

#: How the audit names whoever has a shell on the service's machine.
_OPERATOR = Reader(email="manage.py sql", address="")


class Command(BaseCommand):
    help = "Runs one SELECT over a tenant's proxy_logs, with the limits of the API, and prints a table."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("statement", metavar="SELECT")
        parser.add_argument("--tenant", type=UUID, required=True, metavar="ID")

    def handle(self, *, statement: str, tenant: UUID, **_: Any) -> None:
        try:
            result = run_query(default_store(), tenant=tenant, statement=statement, reader=_OPERATOR)
        except ApiError as error:
            raise CommandError(error.text) from error
        console = Console(highlight=False)
        console.print(_table(result))
        more = ", cut at the cap" if result.truncated else ""
        console.print(f"{result.row_count} rows in {result.elapsed_ms} ms{more}", style="dim")


def _table(result: QueryResult) -> Table:
    table = Table()
    for column in result.columns:
        header = Text.assemble(column.name, "\n", (column.type, "dim"))
        table.add_column(header, overflow="fold")
    for batch in result.batches:
        for row in zip(*(json_values(column) for column in batch.columns), strict=True):
            table.add_row(*(Text("" if value is None else as_text(value)) for value in row))
    return table
