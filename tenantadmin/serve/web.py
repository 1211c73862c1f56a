"""The command that starts the web server. `docker/Dockerfile` has the same one; a test compares them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tenantadmin.serve.address import Address

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


def web_arguments(address: Address, *, workers: int = WORKERS) -> list[str]:
    """Return the arguments of granian."""
    return [
        *("--interface", "asginl", "--http", "1", "--no-ws"),
        *("--host", address.host, "--port", str(address.port), "--workers", str(workers)),
        *("--backpressure", str(CONNECTIONS), "--backlog", str(CONNECTIONS)),
        *("--http1-header-read-timeout", str(HEADER_SECONDS * 1000)),
        *("--http1-buffer-size", str(BUFFER_BYTES)),
        *("--workers-kill-timeout", str(STOP_SECONDS)),
        "tenantadmin.asgi:application",
    ]
