"""A backup of the database and of the raw logs is enough: the rest is rebuilt, and nothing differs."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from django.core.management import call_command
from django.db import connection

from tenantadmin.run.embedded.binaries import postgresql_program
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
    from collections.abc import Iterator
    from pathlib import Path


def run(program: str, *arguments: str) -> None:
    """Run a program of PostgreSQL as an operator does, on the server of the tests."""
    server = connection.settings_dict
    environment = {
        "PGHOST": str(server["HOST"]),
        "PGPORT": str(server["PORT"]),
        "PGUSER": str(server["USER"]),
        "PGPASSWORD": str(server["PASSWORD"]),
    }
    subprocess.run([postgresql_program(program), *arguments], env=environment, check=True)


@contextmanager
def restored_database(dump: Path) -> Iterator[None]:
    """Load a dump into an empty database, and use that one inside."""
    original = connection.settings_dict["NAME"]
    name = f"{original}_restored"
    run("createdb", name)
    try:
        run("pg_restore", "--no-owner", "--exit-on-error", "--dbname", name, str(dump))
        connection.close()
        connection.settings_dict["NAME"] = name
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = original
        run("dropdb", "--force", name)


@pytest.mark.django_db(transaction=True)
def test_after_a_restore_a_rebuild_gives_the_same(object_store: Path, tmp_path: Path) -> None:
    put_days()
    rebuild_all()
    before = stored_documents()
    dump = tmp_path / "tenantadmin.dump"
    run("pg_dump", "--format", "custom", "--file", str(dump), connection.settings_dict["NAME"])
    backup = tmp_path / "backup"
    for logs in object_store.glob("*/logs"):
        shutil.copytree(logs, backup / logs.relative_to(object_store))
    shutil.rmtree(object_store)
    shutil.copytree(backup, object_store)

    with restored_database(dump):
        call_command("migrate", check_unapplied=True, verbosity=0)
        call_command("rebuild")

        assert stored_documents() == before == expected(rows_of(DAY, NEXT, LATER))
        assert find_stale() == ([], [])
