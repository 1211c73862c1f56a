"""Serve PostgreSQL's protocol until a signal comes: ``python -m logs.wire --help``."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import ssl
import sys
from collections.abc import Sequence
from functools import partial
from ipaddress import ip_address

import django
import psycopg


def main(arguments: Sequence[str]) -> None:
    """Exits with 1 and the reason if it cannot serve."""
    parser = argparse.ArgumentParser(prog="python -m logs.wire", description="Serve PostgreSQL's protocol.")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=5432, help="(default: %(default)s)")
    options = parser.parse_args(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tenantadmin.settings")
    django.setup()
    try:
        asyncio.run(_serve(options.host, options.port))
    except (OSError, psycopg.Error) as error:
        sys.exit(f"The port cannot be served: {error}")


async def _serve(host: str, port: int) -> None:
    # Imported here because they need Django's apps.
    from django.conf import settings  # noqa: PLC0415

    from logs.wire.catalog import prepare_catalog  # noqa: PLC0415
    from logs.wire.server import WireServer  # noqa: PLC0415
    from logs.wire.translation import translate  # noqa: PLC0415
    from tenantadmin.lib.core.memory import give_memory_back  # noqa: PLC0415

    if settings.SQL_CATALOG is None:
        sys.exit("Set SQL_CATALOG_URL to a PostgreSQL of its own: docs/connect-log.md")
    give_memory_back()
    # The first translation starts the process that all others are copies of.
    translate("SELECT 1")
    server = WireServer(
        partial(
            prepare_catalog,
            settings.SQL_CATALOG,
            secret=settings.SECRET_KEY,
            connections=settings.SQL_CONNECTIONS,
        ),
        tls=_tls(
            host, certificate=settings.SQL_TLS_CERTIFICATE, key=settings.SQL_TLS_KEY, debug=settings.DEBUG
        ),
        connections=settings.SQL_CONNECTIONS,
        threads=settings.WEB_THREADS,
    )
    listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    serving = asyncio.ensure_future(server.serve(listening))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    print(f"PostgreSQL's protocol is served at {host}:{port}", flush=True)  # noqa: T201
    with contextlib.suppress(asyncio.CancelledError):
        await serving


def _tls(host: str, *, certificate: str, key: str, debug: bool) -> ssl.SSLContext | None:
    """Return the settings of TLS; None in development on loopback without a certificate."""
    if not certificate:
        if debug and ip_address(host).is_loopback:
            return None
        sys.exit("Passwords would be readable on the network: set SQL_TLS_CERTIFICATE and SQL_TLS_KEY.")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.load_cert_chain(certificate, key or None)
    return context


if __name__ == "__main__":
    main(sys.argv[1:])
