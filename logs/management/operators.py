"""What the commands share that do for an operator what the API does for its callers."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from logs.audit import Reader
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.terminal import visible

if TYPE_CHECKING:
    from rich.table import Table


class OperatorCommand(BaseCommand):
    """A command that ends with the message of an `ApiError`."""

    @property
    def actor(self) -> str:
        """Who does it: ``manage.py replay``. The command does not know who runs it."""
        return f"manage.py {type(self).__module__.rpartition('.')[2]}"

    @property
    def reader(self) -> Reader:
        """The reader in the audit."""
        return Reader(email=self.actor, address="")

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except ApiError as error:
            raise CommandError(visible(self.describe_error(error))) from error

    def describe_error(self, error: ApiError) -> str:
        """Return what the command ends with."""
        return error.text

    def print_table(self, table: Table, *, width: int | None = None) -> None:
        """Print a table. ``width`` in characters; default: that of the terminal."""
        text = StringIO()
        Console(file=text, highlight=False, markup=False, width=width).print(table)
        self.stdout.write(text.getvalue())
