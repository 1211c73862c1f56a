"""Tests of `manage.py`: the commands for which it starts servers, and its error messages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from django.db import ProgrammingError, connection, transaction

from manage import needs_servers
from tenantadmin.lib.database.connections import NOT_MIGRATED, is_missing_migrations

ROOT = Path(__file__).parents[2]
TENANT = "11111111-2222-4333-8444-555555555555"


@pytest.mark.parametrize(
    ("command_line", "expected"),
    [
        ("", False),
        ("help", False),
        ("--version", False),
        ("migrate --help", False),
        ("makemigrations --check", False),
        ("spectacular --file openapi.json", False),
        ("collectstatic --noinput", False),
        ("serve --demo", False),
        ("migrate", True),
        ("rebuild --tenant 1", True),
        ("create_pat --owner a@b.example", True),
        ("sql --tenant 1 SELECT", True),
        ("a_command_of_tomorrow", True),
    ],
)
def test_servers_start_for_commands_that_may_need_them(
    command_line: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TENANTADMIN_SUPERVISED", raising=False)
    assert needs_servers(command_line.split()) is expected


def test_no_servers_start_for_a_supervised_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENANTADMIN_SUPERVISED", "1")
    assert needs_servers(["migrate"]) is False


@pytest.fixture
def bare_database(db: None) -> Iterator[str]:
    """The URL of a database without tables."""
    name = f"bare_{uuid4().hex}"
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"')
        yield f"{os.environ['DATABASE_URL'].rpartition('/')[0]}/{name}"
        server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def run(command_line: list[str], *, database: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *command_line],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database, "DJANGO_SETTINGS_MODULE": "tenantadmin.settings"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "command_line",
    [
        ["sql", "--tenant", TENANT, "SELECT 1"],
        ["create_pat", "--owner", "ada@example.org", "--scope", "config:read"],
        ["seed_demo"],
    ],
    ids=lambda command_line: command_line[0],
)
def test_a_database_that_is_not_migrated_is_one_sentence(command_line: list[str], bare_database: str) -> None:
    answer = run(command_line, database=bare_database)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr == f"manage.py: {NOT_MIGRATED}\n"


@pytest.mark.slow
def test_the_traceback_is_shown_on_request(bare_database: str) -> None:
    answer = run(["create_admin", "ada@example.org", "--traceback"], database=bare_database)
    assert 'relation "accounts_user" does not exist' in answer.stderr


def test_a_missing_table_in_a_migrated_database_is_another_error(db: None) -> None:
    with pytest.raises(ProgrammingError) as caught, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT * FROM nothing_like_this")
    assert is_missing_migrations(caught.value) is False
