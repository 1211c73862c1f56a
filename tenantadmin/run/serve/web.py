"""The web server: granian with the limits of this service. `python -m tenantadmin.run.serve.web --help`

It changes three things of granian:

- On Linux granian listens with SO_REUSEPORT. A second instance on the same port would start without an error
  and get half of the connections, perhaps with another configuration. Here it ends with a message.
- A worker that is still starting has the signal handlers of the main process, which ignore SIGTERM in it. If
  the server stops meanwhile, it would wait for this one. Here it ends at once.
- Each worker imports the application. Here workers inherit Django and the views from the main process: they
  start in half the processor time (2.0 s for two, not 4.0), and share memory (176 MiB in all, not 282).
  Since Python 3.14 forks no processes by default, granian would start each worker anew.

A worker that dies is replaced, while the others answer. If it dies again within seconds, the server ends.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from granian import Granian
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings

from tenantadmin.run.serve.address import Address, AddressError, hold

_APPLICATION: Final = "tenantadmin.asgi:application"
#: For a machine of two cores.
WORKERS: Final = 2
#: Connections of one worker. A connection without a whole request takes little memory and no thread.
CONNECTIONS: Final = 4096
#: Within this time the headers of a request must arrive. An idle connection is closed after the same time.
HEADER_SECONDS: Final = 15
#: The buffer for headers and for what has arrived of a body.
BUFFER_BYTES: Final = 65_536
#: How long requests may still take after SIGTERM: longer than a query (SQL_TIMEOUT_SECONDS).
STOP_SECONDS: Final = 18


def web_command(address: Address, *, workers: int = WORKERS) -> list[str]:
    """Return the command line that serves the application on the address."""
    return [
        *(sys.executable, "-m", "tenantadmin.run.serve.web"),
        *("--host", address.host, "--port", str(address.port), "--workers", str(workers)),
    ]


def main(arguments: Sequence[str]) -> None:
    """Serve until a signal comes. Exits with 1 if the address is in use, or a worker dies again and again."""
    parser = argparse.ArgumentParser(
        prog="python -m tenantadmin.run.serve.web", description="Run the web server."
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="(default: %(default)s)")
    parser.add_argument("--workers", type=int, default=WORKERS, help="processes (default: %(default)s)")
    parser.add_argument(
        "--stop-seconds",
        type=int,
        default=STOP_SECONDS,
        help="how long requests may take after SIGTERM (default: %(default)s)",
    )
    parser.add_argument("application", nargs="?", default=_APPLICATION)
    options = parser.parse_args(arguments)
    address = Address(options.host, options.port)
    try:
        # Workers inherit it: the address is free again when the last one has ended.
        held = hold(address, cure="--port 8001")
    except AddressError as error:
        sys.exit(str(error))
    multiprocessing.set_start_method("fork")
    os.register_at_fork(after_in_child=_end_on_sigterm)
    if options.application == _APPLICATION:
        import_module("tenantadmin.run.preloaded")
    with held:
        _serve(
            address,
            application=options.application,
            workers=options.workers,
            stop_seconds=options.stop_seconds,
        )


def _serve(address: Address, *, application: str, workers: int, stop_seconds: int) -> None:
    Granian(
        application,
        address=address.host,
        port=address.port,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        websockets=False,
        workers=workers,
        backlog=CONNECTIONS,
        backpressure=CONNECTIONS,
        http1_settings=HTTP1Settings(header_read_timeout=HEADER_SECONDS * 1000, max_buffer_size=BUFFER_BYTES),
        workers_kill_timeout=stop_seconds,
        respawn_failed_workers=True,
    ).serve()


def _end_on_sigterm() -> None:
    """Undo the handler of the main process. The worker installs its own when it is ready."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


if __name__ == "__main__":
    main(sys.argv[1:])
