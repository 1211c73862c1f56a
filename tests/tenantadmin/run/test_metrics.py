"""What Prometheus reads: counts of requests, queries, tasks and builds, and the state of the service."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest
from django.core.cache import cache
from django.core.mail import send_mail
from prometheus_client import REGISTRY

from analytics.models import Build, DayRollup, Kind, SummaryDocument, TenantHealth
from analytics.queues import beat_age, read_staleness
from analytics.tasks import start_jobs
from logs.models import LogSweep, PendingBuild
from logs.notifications import sweep_age
from logs.sql import sandbox
from tenantadmin.celery import app
from tenantadmin.lib.core import metrics
from tenantadmin.lib.http import health
from tenantadmin.lib.objectstore import StoreError, open_store
from tenantadmin.run import alive, metrics_server
from tests import factories
from tests.admin.filling import make_row
from tests.conftest import ApiClient
from tests.metric_names import COUNTERS, GAUGES, HISTOGRAMS

ROOT: Final = Path(__file__).parents[3]
TENANT: Final = UUID("11111111-2222-4333-8444-555555555555")


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"tenantadmin_{name}", labels) or 0.0


@pytest.mark.django_db
def test_requests_are_counted_by_route() -> None:
    world = factories.make_world()
    client = ApiClient(factories.sign_in(world.member))
    counted = {"method": "GET", "route": "tenant", "status": "200"}
    before = value("requests_total", **counted), value("request_seconds_count", route="tenant")
    client.get(f"/config/tenants/{world.tenant.pk}")
    client.request("BREW", "/x")
    assert value("requests_total", **counted) == before[0] + 1
    assert value("request_seconds_count", route="tenant") == before[1] + 1
    assert value("requests_total", method="other", route="-", status="404") >= 1


@pytest.mark.django_db
def test_queries_are_counted_by_outcome() -> None:
    world = factories.make_world()
    client = ApiClient(factories.sign_in(world.member))
    before = value("queries_total", outcome="query_rejected")
    client.post(f"/tenants/{world.tenant.pk}/query", {"sql": "DROP TABLE proxy_logs"})
    assert value("queries_total", outcome="query_rejected") == before + 1


def test_failures_of_the_store_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    before = value("store_errors_total", verb="reach")
    with pytest.raises(StoreError):
        open_store("s3://bucket").check_reachable(seconds=1)
    assert value("store_errors_total", verb="reach") == before + 1


@pytest.mark.django_db
def test_the_state_of_the_service() -> None:
    cache.clear()
    now = datetime.now(UTC)
    for day, attempts in ((date(2026, 1, 1), 0), (date(2026, 1, 2), 4), (None, 0)):
        PendingBuild.objects.create(
            tenant_id=TENANT, day=day, attempts=attempts, marked_at=now - timedelta(seconds=100)
        )
    Build.objects.create(tenant_id=TENANT, period="2026-01-01")
    collector = metrics_server.StateCollector()
    found = {sample.name: sample.value for metric in collector.collect() for sample in metric.samples}
    assert 100 <= found.pop("tenantadmin_pending_age_seconds") < 110
    assert 100 <= found.pop("tenantadmin_staleness_seconds") < 110
    assert found == {
        "tenantadmin_build_info": 1,
        "tenantadmin_server_up": 1,
        "tenantadmin_sql_missing_restrictions": len(sandbox.missing_restrictions()),
        "tenantadmin_quarantined_entries": 0,
        "tenantadmin_queue_length": 0,
        "tenantadmin_pending_days": 2,
        "tenantadmin_failing_builds": 1,
        "tenantadmin_failing_jobs": 0,
        "tenantadmin_running_builds": 1,
    }


def state(name: str, **labels: str) -> float:
    """Return a metric of the service's state."""
    for metric in metrics_server.StateCollector().collect():
        for sample in metric.samples:
            if (sample.name, sample.labels) == (f"tenantadmin_{name}", labels):
                return sample.value
    raise KeyError(name)


@pytest.mark.django_db
def test_a_server_that_does_not_answer_is_a_metric_and_is_not_asked_for_more(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ConnectionError

    checks = {health.DATABASE: lambda: None, health.REDIS: fail, health.OBJECT_STORE: lambda: None}
    monkeypatch.setattr(health, "readiness", health.Readiness(checks))
    monkeypatch.setattr(metrics_server, "read_queues", None)
    servers = {name: state("server_up", server=name) for name in checks}
    assert servers == {health.DATABASE: 1, health.REDIS: 0, health.OBJECT_STORE: 1}
    assert state("pending_days") == 0
    with pytest.raises(KeyError):
        state("beat_age_seconds")


@pytest.mark.django_db
def test_the_staleness_of_each_kind_of_document() -> None:
    """Two days were built 300 and 200 s ago; the documents of their periods are older, but for some."""
    now = datetime.now(UTC)

    def ago(seconds: float) -> datetime:
        return now - timedelta(seconds=seconds)

    for day, seconds in ((date(2025, 12, 31), 300), (date(2026, 1, 1), 200)):
        make_row(DayRollup, tenant_id=TENANT, day=day, built_at=ago(seconds))
    for kind, period, seconds in (
        (Kind.MONTH, "2025-12", 100),
        (Kind.MONTH, "2026-01", 250),
        (Kind.YEAR, "2025", 299),
        (Kind.YEAR, "2026", 199),
        (Kind.RULES, "2025", 500),
        (Kind.OPPORTUNITIES, "2025", 290),
        (Kind.USERS, "", 290),
    ):
        make_row(SummaryDocument, tenant_id=TENANT, kind=kind, period=period, built_at=ago(seconds))

    def staleness() -> dict[str, float]:
        return {kind: round(seconds, -1) for kind, seconds in read_staleness().items()}

    # What is stale waits in the queue of builds.
    assert set(staleness().values()) == {0}
    waiting = PendingBuild.objects.create(tenant_id=TENANT, day=None)
    expected = {"day": 0, "month": 200, "year": 0, "rules": 300, "opportunities": 200, "users": 200}
    assert staleness() == expected
    # A day that is not built yet is on no document.
    PendingBuild.objects.create(tenant_id=TENANT, day=date(2026, 1, 2), marked_at=ago(240))
    assert staleness() == {kind: max(240, seconds) for kind, seconds in expected.items()}
    waiting.delete()
    assert set(staleness().values()) == {240}


@pytest.mark.django_db
def test_the_age_of_the_sweep_is_that_of_the_tenant_that_waits_longest() -> None:
    assert sweep_age() is None
    now = datetime.now(UTC)
    for tenant, seconds in ((None, 900), (TENANT, 500), (UUID(int=1), 100)):
        LogSweep.objects.create(tenant_id=tenant, listed_at=now - timedelta(seconds=seconds))
    LogSweep.objects.create(tenant_id=UUID(int=2))
    assert 500 <= state("sweep_age_seconds") < 510


@pytest.mark.django_db
def test_quarantined_entries_are_summed() -> None:
    for tenant, count in ((TENANT, 3), (UUID(int=1), 4), (UUID(int=2), 0)):
        TenantHealth.objects.create(tenant_id=tenant, quarantined=count)
    assert state("quarantined_entries") == 7


def test_the_release_is_a_metric() -> None:
    assert state("build_info", version="0.2.0") == 1


def test_mails_that_fail_are_counted(settings: Any) -> None:
    settings.EMAIL_BACKEND = "tenantadmin.mail.CountedSmtpBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    failed = value("mails_total", state="failed")
    with pytest.raises(OSError, match="refused"):
        send_mail("a", "b", None, ["ada@example.org"])
    assert value("mails_total", state="failed") == failed + 1


@pytest.mark.django_db
def test_the_age_of_beat_is_the_age_of_its_last_job() -> None:
    app.conf.task_always_eager = True
    start_jobs()
    app.conf.task_always_eager = False
    age = beat_age()
    assert age is not None
    assert age < 10
    cache.set("beat-seen", time.time() - 50)
    assert 50 <= state("beat_age_seconds") < 60


def test_the_first_requests_of_a_process_are_counted_at_once() -> None:
    code = (
        "import sys; from concurrent.futures import ThreadPoolExecutor; from threading import Barrier\n"
        "from tenantadmin.lib.core.metrics import count_query\n"
        "import prometheus_client as prometheus\n"
        "sys.setswitchinterval(1e-6); barrier = Barrier(8)\n"
        "def count(_): barrier.wait(); count_query(outcome='ok', seconds=1)\n"
        "with ThreadPoolExecutor(8) as pool: list(pool.map(count, range(8)))\n"
        "print(prometheus.REGISTRY.get_sample_value('tenantadmin_queries_total', {'outcome': 'ok'}))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PROMETHEUS_MULTIPROC_DIR"}
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert answer.stdout == "8.0\n", answer.stderr


@pytest.mark.slow
def test_the_processes_of_a_container_share_an_address(tmp_path: Path) -> None:
    """Two processes count; one serves the sum. When it is killed, the other takes over."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    code = (
        "import sys, django; django.setup(); from tenantadmin.run import metrics_server as server; "
        "from tenantadmin.lib.core.metrics import count_query; server._RETRY_SECONDS = 0.1; "
        "count_query(outcome='ok', seconds=1); server.start(); print('started', flush=True); sys.stdin.read()"
    )
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "METRICS_ADDRESS": f"127.0.0.1:{port}",
        "PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "metrics"),
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"
        assert 'tenantadmin_queries_total{outcome="ok"} 2.0' in scrape(port)
        processes[0].kill()
        processes[0].wait()
        assert 'tenantadmin_queries_total{outcome="ok"} 2.0' in scrape(port)
    finally:
        for process in processes:
            process.kill()
            process.communicate()


SERVE: Final = """
import sys, django; django.setup()
from tenantadmin.celery import app, start_beat, start_worker_metrics
{start}(sender=None)
print("started", flush=True); sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("start", ["start_beat", "start_worker_metrics"])
def test_metrics_are_served_before_the_first_count(start: str, tmp_path: Path) -> None:
    """From a `VAR_DIR` without any folder, also by beat, which counts nothing."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "METRICS_ADDRESS": f"127.0.0.1:{port}",
        "VAR_DIR": str(tmp_path / "fresh"),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE.format(start=start)],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        assert "tenantadmin_build_info" in scrape(port)
    finally:
        process.kill()
        process.communicate()


COUNT: Final = """
import os
from prometheus_client import CollectorRegistry, values
from prometheus_client.multiprocess import MultiProcessCollector
from tenantadmin.lib.core import metrics
metrics.count_query(outcome="ok", seconds=1)
if os.fork() == 0:
    metrics.count_query(outcome="ok", seconds=1)
    os._exit(0)
os.wait()
registry = CollectorRegistry()
MultiProcessCollector(registry)
found = registry.get_sample_value("tenantadmin_queries_total", {"outcome": "ok"})
for file in sorted(metrics.metrics_folder().iterdir()):
    size = file.stat()
    assert file.suffix == ".db" and size.st_blocks * 512 >= size.st_size, (file, size)
print(found, values.ValueClass is values.MutexValue)
"""


@pytest.mark.parametrize(("is_full", "found"), [(False, "2.0 False\n"), (True, "None True\n")])
def test_counting_needs_no_block_of_the_disk_later(is_full: bool, found: str, tmp_path: Path) -> None:
    """A write to a mapped file without a block ends the process (SIGBUS)."""
    full = """
import os
def refuse(*arguments): raise OSError(28, "No space left on device")
os.posix_fallocate = refuse
"""
    answer = subprocess.run(
        [sys.executable, "-c", (full if is_full else "") + COUNT],
        cwd=ROOT,
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "metrics")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.stdout == found, answer.stderr
    assert ("This process counts nothing" in answer.stderr) == is_full


def test_the_files_of_a_process_hold_every_label(tmp_path: Path) -> None:
    """Otherwise, they would grow, and the new blocks would not be allocated."""
    program = """
from tenantadmin.lib.core import metrics
routes = [f"a-route-with-a-rather-long-name-{number}" for number in range(300)]
for route in routes:
    for method in ("GET", "PUT", "POST"):
        for status in (200, 304, 400, 401, 403, 404):
            metrics.count_request(method=method, route=route, status=status, seconds=1)
for task in range(60):
    for state in ("SUCCESS", "FAILURE", "RETRY"):
        metrics.count_task(task=f"analytics.tasks.with_a_rather_long_name_{task}", state=state, seconds=1)
"""
    folder = tmp_path / "metrics"
    subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)},
        check=True,
    )
    assert {
        file.stem.partition("_")[0]: file.stat().st_size for file in folder.iterdir()
    } == metrics._FILE_BYTES


def scrape(port: int) -> str:
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
                return str(answer.read().decode())
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_the_dashboard_shows_metrics_that_exist() -> None:
    dashboard: Any = json.loads((ROOT / "docker" / "grafana-dashboard.json").read_text())
    shown = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    used = set(re.findall(r"tenantadmin_\w+", shown))
    assert used <= COUNTERS | HISTOGRAMS | GAUGES
    assert used >= COUNTERS - {"tenantadmin_tasks_total"} | GAUGES


def test_a_process_that_says_nothing_is_not_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VAR_DIR", str(tmp_path))
    assert not alive.is_alive("worker")
    alive.touch("worker")
    assert alive.is_alive("worker")
    assert not alive.is_alive("beat")
    long_ago = time.time() - alive.LONGEST_SECONDS - 1
    os.utime(alive.alive_file("worker"), (long_ago, long_ago))
    assert not alive.is_alive("worker")
