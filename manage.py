#!/usr/bin/env python
"""Run a command of the service. Start the embedded servers for commands that need them."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from django.conf import settings

from tenantadmin.conf.environment import ConfigurationError
from tenantadmin.run import embedded
from tenantadmin.run.serve.supervisor import ignore_write_errors

#: What every deployment sets: `serve` is in development mode while all of them are absent.
DEPLOYMENT = {"DATABASE_URL", "DJANGO_SECRET_KEY", "JWT_PRIVATE_KEY", "PUBLIC_BASE_URL"}
#: Commands that work without database and Redis. `serve` starts them itself, and watches them.
SELF_SUFFICIENT = {
    "check",
    "collectstatic",
    "compilemessages",
    "diffsettings",
    "findstatic",
    "help",
    "makemessages",
    "makemigrations",
    "serve",
    "spectacular",
    "startapp",
    "startproject",
    "version",
}


def needs_servers(arguments: Sequence[str]) -> bool:
    """Return True if this command line needs PostgreSQL and Redis."""
    if os.environ.get("TENANTADMIN_SUPERVISED") == "1" or not arguments:
        return False
    if {"-h", "--help", "--version"} & set(arguments):
        return False
    return arguments[0] not in SELF_SUFFICIENT


def main(argv: Sequence[str]) -> None:
    """Run the command in `argv`."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tenantadmin.settings")
    given = {name.removesuffix("_FILE") for name in os.environ}
    if argv[1:2] == ["serve"] and DEPLOYMENT.isdisjoint(given):
        # The processes that it starts inherit it.
        os.environ.setdefault("DJANGO_DEBUG", "true")
    # This reads the settings, so nothing starts while one of them is wrong.
    var_dir = settings.VAR_DIR
    with contextlib.ExitStack() as stack:
        if needs_servers(argv[1:]):
            # On SIGTERM, leave the `with` block, so that the servers stop too.
            signal.signal(signal.SIGTERM, _exit_on_signal)
            needs = embedded.find_needs(os.environ)
            stack.enter_context(embedded.running(var_dir, database=needs.database, redis=needs.redis))
        elif argv[1:2] == ["serve"]:
            ignore_write_errors()
        _execute(argv)


def _execute(argv: Sequence[str]) -> None:
    from django.core.management import execute_from_command_line
    from django.db import ProgrammingError

    try:
        execute_from_command_line(list(argv))
    except ProgrammingError as error:
        from tenantadmin.lib.database.connections import NOT_MIGRATED, is_missing_migrations

        # The error of a failed migration explains itself.
        if argv[1] == "migrate" or "--traceback" in argv or not is_missing_migrations(error):
            raise
        sys.exit(f"manage.py: {NOT_MIGRATED}")


def _exit_on_signal(signum: int, _frame: object) -> NoReturn:
    sys.exit(128 + signum)


if __name__ == "__main__":
    try:
        main(sys.argv)
    except ConfigurationError as error:
        sys.exit("\n".join(f"manage.py: {problem}" for problem in error.problems))
    except embedded.EmbeddedError as error:
        sys.exit(f"manage.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
