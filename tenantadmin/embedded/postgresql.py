"""PostgreSQL: its data directory, its command line, and the moment it answers."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import psycopg

from tenantadmin.embedded.binaries import postgresql_program
from tenantadmin.embedded.errors import EmbeddedError
from tenantadmin.embedded.identity import KEEPER, Identity
from tenantadmin.embedded.layout import DATABASE, PORT, USER, Layout

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: An empty environment but for this: no locale, no PG* variable of the caller's reaches the server.
ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC", "PATH": os.defpath}
#: For tests, which throw the data away: nothing waits for the disk.
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def prepare_data(layout: Layout, *, identity: Identity, durable: bool) -> None:
    """Make the data directory unless it is there. Raises EmbeddedError if it is not one that we can use.

    It is built beside its place and renamed into it: killed half way, it is built again.
    """
    data = layout.postgresql_data
    initdb = postgresql_program("initdb")
    if data.is_dir() and any(data.iterdir()):
        _check_version(data, expected=_major_version(initdb))
        _give(data, identity)
        return
    partial = data.with_name(f"{data.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o700)
    _give(partial, identity)
    # The builtin locale sorts alike on every system, and the wheel has no ICU.
    command = [
        *(*KEEPER, *identity.options, "--chdir", str(layout.var_dir), "--", str(initdb)),
        *("--pgdata", str(partial), "--username", USER, "--auth", "trust", "--encoding", "UTF8"),
        *("--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--locale", "C"),
        *(() if durable else ("--no-sync",)),
    ]
    result = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        reason = next(reversed(result.stderr.strip().splitlines()), f"exit code {result.returncode}")
        raise EmbeddedError(f"PostgreSQL could not be set up in {data}: {reason}.")
    partial.rename(data)


def server_command(layout: Layout, *, durable: bool) -> list[str]:
    """Return the command line of the server. It listens on a Unix socket alone."""
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": f'"{layout.socket_dir}"',
        "unix_socket_permissions": "0700",
        "port": str(PORT),
        "max_connections": "200",
        "shared_buffers": "128MB",
        "timezone": "UTC",
        "log_timezone": "UTC",
        **({} if durable else _NOT_DURABLE),
    }
    return [
        *(str(postgresql_program("postgres")), "-D", str(layout.postgresql_data)),
        *(part for name, value in settings.items() for part in ("-c", f"{name}={value}")),
    ]


def answers(layout: Layout) -> bool:
    """Say whether the server takes connections, and make the service's database on the first one."""
    try:
        with psycopg.connect(
            host=str(layout.socket_dir), port=PORT, user=USER, dbname="postgres", autocommit=True
        ) as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
            if known is None:
                connection.execute(f"CREATE DATABASE {DATABASE}")
    except psycopg.OperationalError:
        return False
    return True


def _major_version(program: Path) -> str:
    # The output reads: initdb (PostgreSQL) 18.4
    result = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return result.stdout.split()[-1].partition(".")[0]


def _check_version(data: Path, *, expected: str) -> None:
    try:
        found = (data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise EmbeddedError(
            f"{data} holds files, but no PostgreSQL data. Move it away, and it is made anew."
        ) from None
    if found != expected:
        raise EmbeddedError(
            f"{data} was made by PostgreSQL {found}, and this is PostgreSQL {expected}. "
            "Dump it with the old one, or move it away to begin anew."
        )


def _give(data: Path, identity: Identity) -> None:
    """Make the server's user the owner of its files. Only root ever has something to change."""
    if data.stat().st_uid == identity.uid:
        return
    if os.geteuid() != 0:
        raise EmbeddedError(f"{data} belongs to another user. Run the command as that user, or set VAR_DIR.")
    for path in _tree(data):
        os.chown(path, identity.uid, identity.gid, follow_symlinks=False)


def _tree(top: Path) -> Iterator[Path]:
    yield from top.rglob("*")
    # Last: a chown that was killed half way is done again.
    yield top
