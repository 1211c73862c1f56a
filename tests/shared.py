"""Rows and objects that the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.test import override_settings

from tenantadmin.lib.objectstore import storage_settings

if TYPE_CHECKING:
    from pytest_django.plugin import DjangoDbBlocker


@contextmanager
def shared_by_tests(django_db_blocker: DjangoDbBlocker, root: Path) -> Iterator[None]:
    """Use one transaction and one object store under ``root`` for the tests that run in this context.

    What a test itself writes to the database is undone after it, as always.
    """
    storages = {**settings.STORAGES, "objects": storage_settings(f"file://{root}")}
    with django_db_blocker.unblock(), override_settings(STORAGES=storages), transaction.atomic():
        yield
        transaction.set_rollback(True)
