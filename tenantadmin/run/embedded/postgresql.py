"""PostgreSQL: its data directory, its command line, and the check that it is ready."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg

from tenantadmin.run.embedded.layout import (
    DATABASE,
    MONITOR,
    PORT,
    USER,
    EmbeddedError,
    Identity,
    Layout,
    postgresql_program,
)

#: The whole environment of the server: it does not get the caller's locale or PG* variables.
ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC", "PATH": os.defpath}
#: The server ends if its log (WAL) needs a new file, or a checkpoint writes the state of replication, and the
#: disk is full. So the files of the log are used again, not removed, and there is no replication.
_DURABLE = {"min_wal_size": "128MB", "max_wal_size": "128MB", "max_active_replication_origins": "0"}
#: Settings for tests, which do not keep the data: the server does not wait for the disk, and vacuums nothing.
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off"}
#: Makes all files of the log at once, unless data are not kept.
_MAKE_LOG_FILES = """
DO $$ BEGIN
    FOR number IN 1..8 LOOP
        EXIT WHEN NOT current_setting('fsync')::boolean;
        PERFORM pg_logical_emit_message(true, '', ''), pg_switch_wal();
    END LOOP;
END $$
"""


def prepare_data(layout: Layout, *, identity: Identity, durable: bool) -> None:
    """Create the data directory if it does not exist. Raises EmbeddedError if the existing one is unusable.

    It is created under another name, then renamed. If that is interrupted, the next call starts again.
    """
    data = layout.postgresql_data
    initdb = postgresql_program("initdb")
    if data.is_dir() and any(data.iterdir()):
        _check_version(data, expected=_major_version(initdb))
        _change_owner(data, identity)
        return
    partial = data.with_name(f"{data.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o700)
    _change_owner(partial, identity)
    # The builtin locale sorts the same way on every system, and the wheel has no ICU.
    command = [
        *(*MONITOR, *identity.options, "--chdir", str(layout.var_dir), "--", str(initdb)),
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
    """Return the command line of the server. It listens only on a Unix socket."""
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": f'"{layout.socket_dir}"',
        "unix_socket_permissions": "0700",
        "port": str(PORT),
        "max_connections": "200",
        "shared_buffers": "128MB",
        "timezone": "UTC",
        "log_timezone": "UTC",
        **(_DURABLE if durable else _NOT_DURABLE),
    }
    return [
        *(str(postgresql_program("postgres")), "-D", str(layout.postgresql_data)),
        *(part for name, value in settings.items() for part in ("-c", f"{name}={value}")),
    ]


def is_ready(layout: Layout) -> bool:
    """Return True if the server accepts connections. Create the service's database if it does not exist."""
    try:
        with psycopg.connect(
            host=str(layout.socket_dir), port=PORT, user=USER, dbname="postgres", autocommit=True
        ) as connection:
            row = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
            if row is None:
                connection.execute(f"CREATE DATABASE {DATABASE}")
                connection.execute(_MAKE_LOG_FILES)
                # Gives them free.
                connection.execute("CHECKPOINT")
    except psycopg.OperationalError:
        return False
    return True


def _major_version(program: Path) -> str:
    # Output: initdb (PostgreSQL) 18.4
    result = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return result.stdout.split()[-1].partition(".")[0]


def _check_version(data: Path, *, expected: str) -> None:
    try:
        found = (data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise EmbeddedError(
            f"{data} has files, but they are not PostgreSQL data. Move the directory away; "
            "the next start creates a new one."
        ) from None
    if found != expected:
        raise EmbeddedError(
            f"{data} was created by PostgreSQL {found}, but this is PostgreSQL {expected}. "
            f"Move the directory away to start with an empty database; to keep the data, dump them with "
            f"PostgreSQL {found} first."
        )


def _change_owner(data: Path, identity: Identity) -> None:
    """Make the server's user the owner of its files. Only root can need this.

    Raises EmbeddedError if the files belong to another user, and this user is not root.
    """
    if data.stat().st_uid == identity.uid:
        return
    if os.geteuid() != 0:
        raise EmbeddedError(f"{data} belongs to another user. Run the command as that user, or set VAR_DIR.")
    for path in _tree(data):
        os.chown(path, identity.uid, identity.gid, follow_symlinks=False)


def _tree(top: Path) -> Iterator[Path]:
    yield from top.rglob("*")
    # Last: if the change of owners is interrupted, the owner of `top` shows that it must be repeated.
    yield top
