"""A port for a server that a test starts as a process."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved_port() -> Iterator[int]:
    """Reserve a free port of 127.0.0.1 for a server that starts meanwhile.

    Otherwise the system could give it to a connection of another process before the server listens.
    """
    with socket.socket() as keeper:
        # Servers set one of them, or both: they may use a port that is reserved so.
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            keeper.setsockopt(socket.SOL_SOCKET, option, 1)
        keeper.bind(("127.0.0.1", 0))
        port: int = keeper.getsockname()[1]
        yield port
