"""The port on loopback. Its log is empty, or has three days: 1, 2 and 3 requests of users u0, u1, u2."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from socket import create_server
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection

from accounts.access.scopes import Scope
from logs.layout import day_start_ms
from logs.wire.catalog import Catalog, prepare_catalog
from logs.wire.server import WireServer
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.gateway.faces.tls import HOST, make_certificate
from tests.objects import save_object

DAYS = [date(2026, 3, number) for number in (1, 2, 3)]


@dataclass
class Scene:
    port: int
    catalog: Catalog
    server: WireServer
    world: factories.World
    password: str
    authority: Path

    @property
    def database(self) -> str:
        return str(self.world.tenant.pk)

    def connect_past(self) -> psycopg.Connection[Any]:
        """Connect to the catalog server, past the port, as the role."""
        there = self.catalog
        return psycopg.connect(
            host=there.host,
            port=there.port,
            dbname=there.database,
            user=there.database,
            password=there.password,
        )

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """Connect with psycopg, by TLS."""
        known = {
            "host": HOST,
            "port": self.port,
            "dbname": self.database,
            "user": "anyone",
            "password": self.password,
            "sslmode": "verify-full",
            "sslrootcert": str(self.authority),
        }
        return psycopg.connect(**{**known, "autocommit": True, **options})


def write_log(world: factories.World) -> None:
    for number, day in enumerate(DAYS):
        entries = [
            {
                "timestamp": day_start_ms(day) + row * 3_600_000,
                "logId": f"{day} {row}",
                "userName": f"u{row}",
                "statusCode": 200,
                "cacheStatus": "HIT" if row else "MISS",
                "responseTimeMs": 10 * row,
                "isReadOnly": True,
            }
            for row in range(number + 1)
        ]
        body = "\n".join(map(json.dumps, entries)).encode()
        save_object(default_store(), f"{world.tenant.pk}/logs/{day:%Y/%m/%d}/00/a.json", body)
    call_command("rebuild", tenant=world.tenant.pk)


@contextmanager
def serving(server: WireServer) -> Iterator[int]:
    """Serve in a thread, and yield the port."""
    listening = create_server(("127.0.0.1", 0))
    loop = asyncio.new_event_loop()
    task = loop.create_task(server.serve(listening))

    def run() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        finally:
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        listening.close()


@contextmanager
def make_scene(folder: Path) -> Iterator[Scene]:
    world = factories.make_world()
    tls, authority = make_certificate(folder)
    catalog = {**connection.settings_dict, "OPTIONS": {}}
    prepare = partial(prepare_catalog, catalog, secret=settings.SECRET_KEY, connections=60)
    server = WireServer(prepare, tls=tls, connections=50, threads=16)
    password = factories.pat_secret(world.member, Scope.LOGS_QUERY, tenants=[str(world.tenant.pk)])
    with serving(server) as port:
        yield Scene(port, prepare(), server, world, password, authority)


@pytest.fixture
def scene(transactional_db: None, tmp_path: Path) -> Iterator[Scene]:
    cache.clear()
    with make_scene(tmp_path) as made:
        yield made
    cache.clear()


@pytest.fixture
def filled(scene: Scene) -> Scene:
    """The port, over a log with six requests."""
    write_log(scene.world)
    return scene
