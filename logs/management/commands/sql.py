"""``manage.py sql --tenant ID 'SELECT …'``: one query over a tenant's log, as the API runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from accounts.management.arguments import add_tenant
from logs.audit import Reader
from logs.display import print_result
from logs.queries import run_query
from logs.sql.results import csv_pieces, ndjson_pieces
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.objectstore import default_store
from tenantadmin.lib.terminal import visible

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterator
    from uuid import UUID

#: The reader in the audit: the command does not know its user.
_OPERATOR = Reader(email="manage.py sql", address="")
_WRITERS: Final = {"csv": csv_pieces, "ndjson": ndjson_pieces}


class Command(BaseCommand):
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
        try:
            result = run_query(default_store(), tenant=tenant, statement=statement, reader=_OPERATOR)
        except ApiError as error:
            raise CommandError(visible(error.text)) from error
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
