"""Redis, here Valkey: its command line and the check that it is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

import redis

from tenantadmin.run.embedded.layout import redis_program

if TYPE_CHECKING:
    from tenantadmin.run.embedded.layout import Layout


def server_command(layout: Layout, *, durable: bool) -> list[str]:
    """Return the command line of the server. It listens only on a Unix socket."""
    return [
        *(str(redis_program()), "--port", "0", "--dir", str(layout.redis_data)),
        *("--unixsocket", str(layout.redis_socket), "--unixsocketperm", "700"),
        *("--appendonly", "yes" if durable else "no", "--appendfsync", "everysec", "--save", ""),
        *("--daemonize", "no", "--loglevel", "notice"),
    ]


def is_ready(layout: Layout) -> bool:
    """Return True if the server has loaded its data and accepts commands."""
    try:
        with redis.Redis(unix_socket_path=str(layout.redis_socket), socket_timeout=5) as client:
            return bool(client.ping())
    except redis.ConnectionError:
        return False
