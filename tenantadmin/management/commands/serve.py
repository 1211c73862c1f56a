"""`manage.py serve`: the whole service in one terminal, until Ctrl-C."""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from analytics.demo.seed import make_last_digests
from tenantadmin.lib.objectstore import default_store
from tenantadmin.lib.terminal import timed
from tenantadmin.run import embedded
from tenantadmin.run.embedded.monitor import die_with_parent
from tenantadmin.run.serve import announce
from tenantadmin.run.serve.address import Address, AddressError, check_is_free
from tenantadmin.run.serve.supervisor import Supervisor
from tenantadmin.run.serve.web import web_command

#: How often the demo looks whether a day has ended. The clock may be set, and the machine may sleep.
_LOOK_SECONDS = 60
#: Writes the missing days of the demo, in a process of its own: it takes 100 MiB.
_CONTINUE_DEMO = (sys.executable, "-m", "django", "seed_demo", "--continue")
#: Tasks that run at once, for a machine with two cores.
TASKS_AT_ONCE = 2
CHILD_ENVIRONMENT = {
    "TENANTADMIN_SUPERVISED": "1",
    "PYTHONUNBUFFERED": "1",
    # Celery handles SIGTERM like SIGQUIT: after three seconds, the tasks go back into the queue.
    "REMAP_SIGTERM": "SIGQUIT",
    # This warning has fifteen lines. In a container, root is normal.
    "PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges",
}


class Command(BaseCommand):
    """Starts PostgreSQL and Redis unless configured, migrates, and supervises web, worker and beat."""

    help = "Run the web server, the Celery worker and beat, with PostgreSQL and Redis unless configured."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--demo", action="store_true", help="seed demo data first, once")
        parser.add_argument("--sql-port", type=int, help="serve PostgreSQL's protocol at this port, too")

    def handle(self, *_args: Any, demo: bool, sql_port: int | None, **_options: Any) -> None:
        try:
            address = Address(settings.HOST, settings.PORT)
            check_is_free(address)
        except AddressError as error:
            raise CommandError(str(error)) from None
        needs = embedded.find_needs(os.environ)
        with (
            embedded.running(settings.VAR_DIR, database=needs.database, redis=needs.redis) as servers,
            self._preparing(demo=demo) as building,
        ):
            if demo:
                threading.Thread(target=continue_demo, args=(threading.Event(),), daemon=True).start()
            started = commands(address, sql_port=sql_port)
            supervisor = Supervisor(started, env={**os.environ, **CHILD_ENVIRONMENT})
            failure = supervisor.run(
                servers=servers,
                on_start=partial(announcement, address, building),
                # Web starts sooner without them, and the worker does not build the days of the demo too.
                later=["worker", "beat"],
            )
        if failure:
            raise CommandError(f"{failure}, so everything else was stopped. Start again: the data are kept.")

    @contextmanager
    def _preparing(self, *, demo: bool) -> Iterator[BaseProcess]:
        """Prepare in another process, whose memory is free when it ends: seeding the demo takes 100 MiB.

        Yield when the other processes can start. It may still build the days of the demo.
        """
        context = get_context("fork")
        ready, tell = context.Pipe(duplex=False)
        process = context.Process(target=self._prepare, args=(os.getpid(), tell), kwargs={"demo": demo})
        process.start()
        tell.close()
        try:
            ready.recv()
            yield process
        except EOFError:
            process.join()
            raise CommandError("The service could not be prepared.") from None
        finally:
            process.terminate()
            process.join()

    def _prepare(self, parent: int, tell: Connection, *, demo: bool) -> None:
        die_with_parent(signal.SIGTERM, parent=parent)
        try:
            # These are not lines of the log: the supervisor writes its own beside them.
            logging.disable(logging.INFO)
            with timed("Migrating the database (ten seconds the first time)"):
                call_command("migrate", interactive=False, verbosity=0)
            if demo:
                with timed("Writing the log of the demo (half a minute the first time)"):
                    call_command("seed_demo", later=True)
            settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
            if not settings.DEBUG:
                call_command("collectstatic", interactive=False, verbosity=0)
            tell.send(None)
            if demo:
                with timed("Summarising the demo (half a minute the first time)"):
                    call_command("rebuild")
                    make_last_digests(default_store())
        except CommandError as error:
            sys.exit(f"{type(error).__name__}: {error}")
        except KeyboardInterrupt:
            sys.exit(130)


def continue_demo(stopping: threading.Event) -> None:
    """Write the demo's log of each day when the day has ended, until `stopping` is set."""
    written_on = datetime.now(UTC).date()
    while not stopping.wait(_LOOK_SECONDS):
        today = datetime.now(UTC).date()
        if today != written_on and subprocess.run(_CONTINUE_DEMO, check=False).returncode == 0:
            written_on = today


def announcement(address: Address, building: BaseProcess, stopping: threading.Event) -> str | None:
    """Wait until the service answers, and return the text to print, which is kept in a file, too.

    None if `stopping` is set first.

    Raises CommandError if the process that is `building` the demo failed.
    """
    if not announce.wait_until_it_answers(f"{address.url}/", stopping=stopping):
        return None
    building.join()
    if building.exitcode:
        raise CommandError("The days of the demo could not be built.")
    var_dir: Path = settings.VAR_DIR
    file = var_dir / "addresses.txt"
    text = announce.describe(
        address.url,
        demo_file=var_dir / "demo.json",
        var_dir=None if var_dir == settings.DEFAULT_VAR_DIR else var_dir,
    )
    text += (
        f"  All this is in {file}. Ctrl-C stops the service.\n"
        f"  To start over with new data, stop it and remove them: rm -rf {shlex.quote(str(var_dir))}\n\n"
    )
    # The service starts on a full disk, too.
    with suppress(OSError):
        # It has the password and the token of the demo.
        file.touch(0o600)
        file.write_text(text)
    return text


def commands(address: Address, *, sql_port: int | None = None) -> dict[str, list[str]]:
    """Return the command of each process by its name."""
    celery = [sys.executable, "-m", "celery", "-A", "tenantadmin.celery", "-q"]
    wire = [sys.executable, "-m", "logs.wire", "--host", address.host, "--port", str(sql_port)]
    return {
        "web": web_command(address),
        "worker": [
            *(*celery, "worker", "--loglevel", "INFO", "--concurrency", str(TASKS_AT_ONCE)),
            *("--without-mingle", "--without-gossip"),
        ],
        "beat": [*celery, "beat", "--loglevel", "INFO", "--pidfile", ""],
        **({} if sql_port is None else {"wire": wire}),
    }
