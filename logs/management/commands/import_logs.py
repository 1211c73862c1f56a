"""``manage.py import_logs DIR --tenant ID``: copy raw logs into the object store."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.progress import track

from accounts.management.arguments import tenant_id
from logs.importing import BadTree, find_log_files, import_files
from tenantadmin.lib.objectstore import StoreError, default_store
from tenantadmin.lib.terminal import visible


class Command(BaseCommand):
    help = "Copies the tree DIR/logs/YYYY/MM/DD/HH/ of raw log files into the object store of a tenant."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", type=Path, metavar="DIR")
        parser.add_argument("--tenant", type=tenant_id, required=True, metavar="ID")

    def handle(self, *, directory: Path, tenant: UUID, **_: Any) -> None:
        console = Console(stderr=True, highlight=False)
        try:
            files = find_log_files(directory, tenant=tenant)
            steps = track(
                import_files(default_store(), files),
                total=len(files),
                description="Importing",
                console=console,
            )
            written = sum(steps)
        except (BadTree, StoreError, OSError) as error:
            raise CommandError(visible(str(error))) from error
        kept = len(files) - written
        files_word = "file" if written == 1 else "files"
        self.stdout.write(f"{written} {files_word} imported, {kept} there already. Next: manage.py rebuild")
