"""``manage.py copy_objects``: back up what cannot be rebuilt of the object store, and restore it."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tenantadmin.lib.objectstore import StoreError, default_store, open_store
from tenantadmin.lib.objectstore.copying import copy_objects


class Command(BaseCommand):
    help = (
        "Copies raw logs and terms of service between OBJECT_STORE_URL and a backup, and checks that all are "
        "there. What the target has already is not copied again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        direction = parser.add_mutually_exclusive_group(required=True)
        address = "s3://bucket/prefix or file:///directory"
        direction.add_argument("--to", metavar="URL", dest="target", help=f"back up to {address}")
        direction.add_argument("--from", metavar="URL", dest="source", help=f"restore from {address}")

    def handle(self, *, target: str | None, source: str | None, **_: Any) -> None:
        try:
            backup = open_store(target or source or "")
            stores = (default_store(), backup) if target else (backup, default_store())
            total = copy_objects(*stores)
        except (StoreError, ValueError) as error:
            raise CommandError(f"{error}. Run the command again: it copies what is missing.") from error
        if not total.objects:
            raise CommandError("There are no objects to copy. Is the address right, with its prefix?")
        self.stdout.write(f"{total.objects} objects, {total.copied} of them copied now; the copy has all.")
