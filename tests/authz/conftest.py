"""The stage that the tests of this folder share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction

from tests.authz.callers import Stage, set_stage

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def stage(django_db_setup: None, django_db_blocker: Any) -> Iterator[Stage]:
    """One stage for all operations; each request is undone."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield set_stage()
        transaction.set_rollback(True)
