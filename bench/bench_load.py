"""What one caller can take from the others: everything that costs much, at once.

Slow readers of large results, rules that cost much to explain, notifications of hours without logs, and
checks of domains whose name server is silent. Meanwhile another tenant asks what is asked most, and gets new
logs.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
from celery import current_app

from accounts.billing.domains import register_domain
from accounts.models import Account
from analytics.numbers.days import rebuild_day
from bench import raw_logs
from bench.attack import Attack
from bench.bench_http import write_rules
from bench.harness import ROOT, Caller, Compared, console, granian, p95, show, time_of
from logs.models import Partition
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import default_store
from tests import factories

_DAY = date(2026, 3, 1)


def main(
    directory: Path,
    *,
    seconds: int = 30,
    readers: int = 100,
    bombs: int = 8,
    notifications: int = 15,
    domains: int = 100,
) -> None:
    world = factories.make_world()
    Account.objects.update(plan="enterprise")
    tenant, other = world.tenant.pk, world.stranger_tenant.pk
    for one, entries in ((tenant, 12_000), (other, 5_000)):
        raw_logs.write_ndjson(directory / "objects", tenant=one, day=_DAY, entries=entries)
        rebuild_day(default_store(), tenant=one, day=_DAY)
    write_rules(other, 100)
    write_ruleset(tenant_id=tenant, document=_costly_rules(), actor=world.owner.email)
    for number in range(domains):
        register_domain(account_id=world.account.pk, name=f"d{number}.example.org", actor=world.owner.email)
    notify = factories.pat_token(world.stranger, "logs:notify", tenants=[str(other)])
    paths = [f"/users/{world.stranger.email}", f"/config/tenants/{other}/rules", f"/config/tenants/{other}"]
    with _silent_name_server(), granian(workers=2, threads=32) as port, _celery():
        ask = partial(_ask, Caller(port, factories.sign_in(world.stranger)), paths)
        # Connections of their own reach both workers, which load code with their first requests.
        for _ in range(20):
            caller = Caller(port, notify)
            caller.send("GET", "/")
            caller.close()
        ask(seconds=2)
        calm = ask(seconds=seconds / 3)
        attack = Attack(
            port=port,
            tenant=str(tenant),
            account=str(world.account.pk),
            token=factories.sign_in(world.owner),
            notify=factories.pat_token(world.owner, "logs:notify", tenants=[str(tenant)]),
            readers=readers,
            bombs=bombs,
            notifications=notifications,
            domains=domains,
        )
        with _Peak(port) as peak:
            with _running(attack):
                time.sleep(2)
                raw_logs.write_ndjson(directory / "objects", tenant=other, day=now().date(), entries=500)
                started = time.monotonic()
                body = json.dumps({"prefixes": [f"logs/{now().date():%Y/%m/%d}/00"]})
                Caller(port, notify).send("POST", f"/tenants/{other}/logs/notifications", body)
                built: list[float] = []
                watch = threading.Thread(target=lambda: built.append(_wait_for_build(other, started)))
                watch.start()
                attacked = ask(seconds=seconds)
                watch.join()
            time.sleep(5)
    show(
        "One caller takes what it can; another one's requests, two workers",
        "ms",
        [Compared("p95", p95(attacked), "calm", p95(calm), 2)],
    )
    console.print(
        f"web process: {max(peak.sizes) >> 20} MiB at most, {peak.sizes[-1] >> 20} at last (goal 1,024)"
    )
    console.print(f"another tenant's day was built after {built[0]:.1f} s (goal 15)")


def _costly_rules() -> dict[str, Any]:
    """Return rules with many patterns, each of which is compared with each table of a request."""
    conditions = {"tables": {"containsAny": [f"*{number}*x*y*z" for number in range(900)]}}
    return {"rules": [{"id": f"r{number}", "conditions": conditions} for number in range(20)]}


def _ask(caller: Caller, paths: list[str], *, seconds: float) -> list[float]:
    times: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        times += [time_of(partial(caller.get, path)) for path in paths]
        time.sleep(0.02)
    return times


@contextlib.contextmanager
def _running(attack: Attack) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    # The one caller has a machine of its own: it takes only the processor time that the service leaves.
    with context.Manager() as manager, context.Pool(1, os.nice, [19]) as pool:
        ended = manager.Event()
        result = pool.apply_async(attack.run, [ended])
        try:
            yield
        finally:
            ended.set()
        console.print(f"answers to the one caller: {dict(sorted(result.get(120).items()))}")


class _Peak:
    """The resident bytes of the largest web process, ten times a second."""

    def __init__(self, port: int) -> None:
        processes = psutil.Process().children(recursive=True)
        self._workers = [process for process in processes if f":{port} " in " ".join(process.cmdline())]
        self.sizes: list[int] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> _Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.1):
            self.sizes.append(max(worker.memory_info().rss for worker in self._workers))


@contextlib.contextmanager
def _silent_name_server() -> Iterator[None]:
    """Have the servers that start in the block ask a name server that never answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        os.environ.update(DNS_NAMESERVERS="127.0.0.1", DNS_PORT=str(silent.getsockname()[1]))
        yield


@contextlib.contextmanager
def _celery() -> Iterator[None]:
    """Run a worker and beat as in production."""
    program = [sys.executable, "-m", "celery", "--app", "tenantadmin"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [
        subprocess.Popen([*program, *arguments], cwd=ROOT, start_new_session=True, **quiet)
        for arguments in (["worker", "--concurrency", "2"], ["beat"])
    ]
    try:
        while not current_app.control.ping(timeout=1):
            pass
        yield
    finally:
        # The worker would finish its tasks.
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for_build(tenant: UUID, started: float) -> float:
    """Return the seconds until today's build exists."""
    while not Partition.objects.filter(tenant_id=tenant, day=now().date()).exists():
        time.sleep(0.2)
    return time.monotonic() - started
