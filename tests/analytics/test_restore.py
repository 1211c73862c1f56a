"""A backup of the database and of the raw logs is enough: the rest is rebuilt, and nothing differs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from analytics.published.verify import stored_keys, verify_document
from logs.audit import Reader
from tenantadmin.lib.objectstore import LocalStore, copying, default_store
from tenantadmin.lib.objectstore.copying import IncompleteCopy
from tenantadmin.run.embedded.layout import postgresql_program
from tests.analytics.builds import (
    DAY,
    LATER,
    NEXT,
    TENANT,
    entry,
    expected,
    find_stale,
    put,
    put_days,
    rebuild_all,
    rows_of,
    stored_documents,
)
from tests.objects import use_store
from tests.s3 import s3_endpoint, s3_url  # noqa: F401  # fixtures
from tosapp.publishing import publish as publish_terms


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


def copy_objects(**options: str) -> str:
    output = StringIO()
    call_command("copy_objects", stdout=output, **options)
    return output.getvalue().strip()


@pytest.fixture(params=["directory", "bucket with a prefix"])
def _store(request: pytest.FixtureRequest, settings: Any, tmp_path: Path) -> None:
    if request.param != "directory":
        use_store(settings, request.getfixturevalue("s3_url"))
        settings.VAR_DIR = tmp_path


@pytest.mark.slow
@pytest.mark.usefixtures("_store")
@pytest.mark.django_db(transaction=True)
def test_after_a_restore_a_rebuild_gives_the_same(tmp_path: Path) -> None:
    """The commands of docs/operating.md, "Backups"."""
    put_days()
    publish_terms("# Terms", actor="ada@example.org")
    rebuild_all()
    before = stored_documents()
    dump = tmp_path / "tenantadmin.dump"
    run("pg_dump", "--format", "custom", "--file", str(dump), connection.settings_dict["NAME"])
    backup = (tmp_path / "backup").as_uri()
    assert copy_objects(target=backup) == "6 objects, 6 of them copied now; the copy has all."
    put("01/late.json", entry(DAY))
    store = default_store()
    # Terms are few and may be replaced, so they are copied each time.
    assert copy_objects(target=backup) == "7 objects, 4 of them copied now; the copy has all."
    store.delete(f"{TENANT}/logs/2025/12/31/01/late.json")
    terms = {entry.key for entry in store.list("tos/")}
    store.delete_many([entry.key for entry in store.list("")])
    assert copy_objects(source=backup) == "7 objects, 7 of them copied now; the copy has all."
    store.delete(f"{TENANT}/logs/2025/12/31/01/late.json")

    with restored_database(dump):
        call_command("migrate", check_unapplied=True, verbosity=0)
        call_command("rebuild")

        assert stored_documents() == before == expected(rows_of(DAY, NEXT, LATER))
        assert find_stale() == ([], [])
        assert {entry.key for entry in store.list("tos/")} == terms
        reader = Reader(email="operator", address="")
        verified = [verify_document(store, key=key, reader=reader) for key in stored_keys(TENANT)]
        assert len(verified) > 10
        assert all(item.equal for item in verified)


def test_a_copy_that_lacks_objects_is_an_error(object_store: Path, tmp_path: Path) -> None:
    put_days()

    class LossyStore(LocalStore):
        def save(self, name: str | None, content: Any, max_length: int | None = None) -> str:
            return str(name) if "2026/03" in str(name) else super().save(name, content, max_length)

    with pytest.raises(IncompleteCopy, match="the copy lacks 1 objects, the first is"):
        copying.copy_objects(default_store(), LossyStore(tmp_path / "backup"))


def test_an_address_without_objects_is_an_error(object_store: Path, tmp_path: Path) -> None:
    """Such as the bucket without the prefix."""
    with pytest.raises(CommandError, match="no objects to copy"):
        copy_objects(source=tmp_path.as_uri())
    with pytest.raises(CommandError, match=r"must be file:///directory or s3://bucket/prefix"):
        copy_objects(target="backup")
