"""``manage.py sql --tenant ID 'SELECT …'``: one query over a tenant's log, as the API runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from accounts.management.arguments import tenant_id
from logs.audit import Reader
from logs.display import print_result
from logs.queries import run_query
from logs.sql.results import csv_pieces, ndjson_pieces
from tenantadmin.core.errors import ApiError
from tenantadmin.objectstore import default_store
from tenantadmin.terminal import visible

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterator
    from uuid import UUID

#: How the audit names whoever has a shell on the service's machine.
_OPERATOR = Reader(email="manage.py sql", address="")
_FILES: Final = {"csv": csv_pieces, "ndjson": ndjson_pieces}


class Command(BaseCommand):
    help = "Runs one SELECT over a tenant's proxy_logs, with the limits of the API, and prints the rows."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("statement", metavar="SELECT")
        parser.add_argument("--tenant", type=tenant_id, required=True, metavar="ID")
        parser.add_argument(
            "--format",
            choices=["table", *_FILES],
            default="table",
            help="table (default): control characters are shown as escapes; csv, ndjson: as the API's.",
        )

    def handle(self, *, statement: str, tenant: UUID, format: str, **_: Any) -> None:  # noqa: A002 - the option
        try:
            result = run_query(default_store(), tenant=tenant, statement=statement, reader=_OPERATOR)
        except ApiError as error:
            raise CommandError(visible(error.text)) from error
        console = Console(highlight=False)
        rows = "1 row" if result.row_count == 1 else f"{result.row_count} rows"
        more = ", cut at the cap" if result.truncated else ""
        if format == "table":
            print_result(console, result)
            console.print(f"{rows} in {result.elapsed_ms} ms{more}", style="dim", soft_wrap=True)
            return
        _write(console, _FILES[format](result))
        if more:
            self.stderr.write(f"{rows}{more}")


def _write(console: Console, pieces: Iterator[bytes]) -> None:
    try:
        for piece in pieces:
            text = piece.decode()
            if console.is_terminal:
                text = "\n".join(visible(line.removesuffix("\r")) for line in text.split("\n"))
            console.file.write(text)
        console.file.flush()
    except BrokenPipeError:
        # As rich does for a table: head has seen enough.
        console.on_broken_pipe()
