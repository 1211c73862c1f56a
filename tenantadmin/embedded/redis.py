"""Redis: its command line and the moment it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import redis

from tenantadmin.embedded.binaries import redis_program

if TYPE_CHECKING:
    from tenantadmin.embedded.layout import Layout


def server_command(layout: Layout, *, durable: bool) -> list[str]:
    """Return the command line of the server. It listens on a Unix socket alone."""
    return [
        *(str(redis_program()), "--port", "0", "--dir", str(layout.redis_data)),
        *("--unixsocket", str(layout.redis_socket), "--unixsocketperm", "700"),
        *("--appendonly", "yes" if durable else "no", "--appendfsync", "everysec", "--save", ""),
        *("--daemonize", "no", "--loglevel", "notice"),
    ]


def answers(layout: Layout) -> bool:
    """Say whether the server has loaded its data and takes commands."""
    try:
        with redis.Redis(unix_socket_path=str(layout.redis_socket), socket_timeout=5) as client:
            return bool(client.ping())
    except redis.ConnectionError:
        return False
