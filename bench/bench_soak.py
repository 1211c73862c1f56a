"""An hour of steady work: an object of the log each second, ten requests each second, two workers.

Each minute it notes what grows if something leaks (memory, open files, connections of the database, files),
and how old the oldest change of the log is that a document does not show. `soak minutes=12` is a shorter run.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import psutil
from django.core.files.base import ContentFile
from django.db import connection
from rich.table import Table

from accounts.models import Account
from analytics.queues import read_staleness
from bench.harness import ROOT, Caller, console, granian
from rules.write import write_ruleset
from tenantadmin.lib.objectstore import default_store
from tests import factories

_ENTRIES: Final = 50
_RULES: Final = [
    {"id": "reads", "conditions": {"isReadOnly": True}, "ttlSeconds": 600, "varyBy": ["userName"]}
]
_SAMPLE_SECONDS: Final = 60
_REQUESTS_PER_SECOND: Final = 10


@dataclass
class Work:
    """What the threads did until now."""

    objects: int = 0
    requests: int = 0
    failed: list[str] = field(default_factory=list)
    slowest_ms: float = 0.0


def main(directory: Path, *, minutes: int = 60) -> None:
    world = factories.make_world()
    Account.objects.update(plan="enterprise")
    tenant = world.tenant.pk
    write_ruleset(tenant_id=tenant, document={"rules": _RULES}, actor="bench@example.org")
    scopes = ("analytics:read", "analytics:users", "config:read", "logs:query", "logs:notify", "cache-admin")
    pat = factories.pat_secret(world.owner, *scopes, tenants=[str(tenant)])
    work, ended = Work(), threading.Event()
    with granian(workers=1, threads=8) as port, _workers():
        threads = [
            threading.Thread(target=_write, args=(port, pat, tenant, work, ended)),
            threading.Thread(target=_ask, args=(port, pat, tenant, work, ended)),
        ]
        for thread in threads:
            thread.start()
        try:
            samples = _sample(directory, work, minutes)
        finally:
            ended.set()
            for thread in threads:
                thread.join()
    _show(samples, minutes)
    if work.failed:
        raise SystemExit(f"{len(work.failed)} requests failed: {work.failed[:5]}")


@contextmanager
def _workers() -> Iterator[None]:
    celery = [sys.executable, "-m", "celery", "-A", "tenantadmin"]
    commands = [
        *(
            [*celery, "worker", "--loglevel", "WARNING", "--concurrency", "1", "-n", name]
            for name in ("a@%h", "b@%h")
        ),
        [*celery, "beat", "--loglevel", "WARNING", "--pidfile", ""],
    ]
    running = [subprocess.Popen(command, cwd=ROOT) for command in commands]
    try:
        yield
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(30)


def _write(port: int, pat: str, tenant: UUID, work: Work, ended: threading.Event) -> None:
    """Store an object each second, and announce it."""
    caller, store = Caller(port), default_store()
    while not ended.wait(1 - time.time() % 1):
        if work.objects % 1000 == 0:
            _authorize(caller, pat)
        moment = datetime.now(UTC)
        entries = [_entry(work.objects, number, moment) for number in range(_ENTRIES)]
        prefix = f"logs/{moment:%Y/%m/%d/%H}"
        body = "\n".join(map(json.dumps, entries)).encode()
        store.save(f"{tenant}/{prefix}/soak-{work.objects:06}.json", ContentFile(body))
        _send(
            caller, work, "POST", f"/tenants/{tenant}/logs/notifications", json.dumps({"prefixes": [prefix]})
        )
        work.objects += 1


def _entry(written: int, number: int, moment: datetime) -> dict[str, Any]:
    is_hit = number % 5 > 0
    return {
        "logId": f"{written}-{number}",
        "timestamp": int(moment.timestamp() * 1000),
        "userName": f"user-{number % 20}",
        "cacheStatus": "HIT" if is_hit else "MISS",
        "cacheKey": f"key-{written % 500}-{number}",
        "matchedRule": "reads",
        "standardizedSql": f"SELECT {(written + number) % 300} FROM sales.orders WHERE day = ?",
        "tables": ["sales.orders"],
        "isReadOnly": True,
        "statementType": "SELECT",
        "responseSize": 1000,
        "responseTimeMs": 5 if is_hit else 500,
        "warehouseExecutionTimeMs": None if is_hit else 480,
    }


def _ask(port: int, pat: str, tenant: UUID, work: Work, ended: threading.Event) -> None:
    """Send ten requests each second, in turn."""
    caller = Caller(port)
    start = time.monotonic()
    while not ended.wait(max(0.0, start + work.requests / _REQUESTS_PER_SECOND - time.monotonic())):
        if work.requests % 10_000 == 0:
            _authorize(caller, pat)
        today = datetime.now(UTC)
        sql = json.dumps(
            {"sql": f"SELECT cacheStatus, count(*) FROM proxy_logs WHERE day = '{today:%Y-%m-%d}' GROUP BY 1"}
        )
        asked: list[tuple[str, str, str | None]] = [
            ("GET", f"/config/tenants/{tenant}/rules", None),
            ("GET", "/config/invalidation-markers", None),
            ("GET", f"/tenants/{tenant}/summaries/{today:%Y/%m/%d}", None),
            ("GET", f"/tenants/{tenant}/summaries/{today:%Y}", None),
            ("GET", f"/tenants/{tenant}/users", None),
            ("POST", f"/tenants/{tenant}/query", sql),
        ]
        _send(caller, work, *asked[work.requests % len(asked)])
        work.requests += 1


def _authorize(caller: Caller, pat: str) -> None:
    """Get an access token for the caller. It ends after an hour."""
    asked = {"grant_type": "pat_exchange", "pat": pat}
    caller.authorize(json.loads(caller.send("POST", "/oauth/token", json.dumps(asked)).body)["access_token"])


def _send(caller: Caller, work: Work, method: str, path: str, body: str | None) -> None:
    started = time.perf_counter()
    try:
        answer = caller.send(method, path, body)
    except (OSError, http.client.HTTPException) as error:
        work.failed.append(f"{method} {path}: {error!r}")
        caller.close()
        return
    work.slowest_ms = max(work.slowest_ms, (time.perf_counter() - started) * 1000)
    # Before the first build, there is no document.
    if answer.status not in {200, 202, 304} and not (answer.status == 404 and work.objects < 60):
        work.failed.append(f"{method} {path}: {answer.status} {answer.body[:200]!r}")


def _sample(directory: Path, work: Work, minutes: int) -> list[dict[str, float]]:
    samples = []
    me = psutil.Process()
    start = time.monotonic()
    for minute in range(1, minutes + 1):
        stalest = 0.0
        while time.monotonic() < start + minute * _SAMPLE_SECONDS:
            stalest = max([stalest, *read_staleness().values()])
            time.sleep(2)
        memory, files, processes = _count(me)
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
            connections = cursor.fetchone()[0]
        samples.append(
            {
                "minute": minute,
                "objects": work.objects,
                "requests": work.requests,
                "failed": len(work.failed),
                "MiB": memory / 2**20,
                "processes": processes,
                "open files": files,
                "connections": connections,
                "files": sum(1 for path in directory.rglob("*") if path.is_file()),
                "stalest s": stalest,
                "slowest ms": work.slowest_ms,
            }
        )
        work.slowest_ms = 0.0
    return samples


def _count(process: psutil.Process) -> tuple[int, int, int]:
    """Return the memory in bytes and the open files of all processes below one, and their number."""
    memory = files = count = 0
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            # Processes share pages: each counts its part.
            memory += child.memory_full_info().pss
            files += child.num_fds()
            count += 1
    return memory, files, count


def _show(samples: list[dict[str, float]], minutes: int) -> None:
    table = Table(
        title=f"{minutes} minutes of an object and ten requests a second", title_justify="left", box=None
    )
    for name in samples[0]:
        table.add_column(name, justify="right")
    for sample in samples:
        table.add_row(*(f"{value:,.0f}" for value in sample.values()))
    console.print(table)
