"""The stage that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from tests.authz.callers import Stage, set_stage


@pytest.fixture(scope="module")
def stage(django_db_setup: None, django_db_blocker: Any) -> Iterator[Stage]:
    """One stage for all operations; each request is undone."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield set_stage()
        transaction.set_rollback(True)
