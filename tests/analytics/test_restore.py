"""A backup of the database and of the raw logs is enough: the rest is rebuilt, and nothing differs."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from django.core.management import call_command

from tests.analytics.builds import (
    DAY,
    LATER,
    NEXT,
    expected,
    find_stale,
    put_days,
    rebuild_all,
    rows_of,
    stored_documents,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.django_db


def test_after_a_restore_of_the_raw_logs_a_rebuild_gives_the_same(object_store: Path, tmp_path: Path) -> None:
    put_days()
    rebuild_all()
    before = stored_documents()
    backup = tmp_path / "backup"
    for logs in object_store.glob("*/logs"):
        shutil.copytree(logs, backup / logs.relative_to(object_store))
    shutil.rmtree(object_store)
    shutil.copytree(backup, object_store)

    call_command("rebuild")

    assert stored_documents() == before == expected(rows_of(DAY, NEXT, LATER))
    assert find_stale() == ([], [])
