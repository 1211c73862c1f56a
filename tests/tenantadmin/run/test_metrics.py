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
from prometheus_client import REGISTRY

from analytics.models import Build
from analytics.service_state import beat_age
from analytics.tasks import queue_builds
from logs.models import PendingBuild
from logs.sql import service
from tenantadmin.celery import app
from tenantadmin.lib.core import metrics
from tenantadmin.lib.objectstore import StoreError, open_store
from tenantadmin.run import alive, metrics_server
from tests import factories
from tests.conftest import ApiClient

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
    assert found == {
        "tenantadmin_queue_length": 0,
        "tenantadmin_pending_days": 2,
        "tenantadmin_failing_builds": 1,
        "tenantadmin_running_builds": 1,
    }


@pytest.mark.django_db
def test_the_age_of_beat_is_the_age_of_its_last_job() -> None:
    app.conf.task_always_eager = True
    queue_builds()
    app.conf.task_always_eager = False
    age = beat_age()
    assert age is not None
    assert age < 10
    cache.set("beat-seen", time.time() - 50)
    names = {metric.name: metric.samples[0].value for metric in metrics_server.StateCollector().collect()}
    assert 50 <= names["tenantadmin_beat_age_seconds"] < 60


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
    source = "".join(Path(str(it.__file__)).read_text() for it in (metrics, metrics_server, service))
    counters = {f"tenantadmin_{name}_total" for name in re.findall(r'counter\("(\w+)"', source)}
    histograms = {f"tenantadmin_{name}_seconds_bucket" for name in re.findall(r'seconds\("(\w+)"', source)}
    gauges = set(re.findall(r'"(tenantadmin_\w+)"', source))
    used = set(re.findall(r"tenantadmin_\w+", shown))
    assert used <= counters | histograms | gauges
    assert used >= counters - {"tenantadmin_tasks_total"} | gauges


def test_a_process_that_says_nothing_is_not_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VAR_DIR", str(tmp_path))
    assert not alive.is_alive("worker")
    alive.touch("worker")
    assert alive.is_alive("worker")
    assert not alive.is_alive("beat")
    long_ago = time.time() - alive.LONGEST_SECONDS - 1
    os.utime(alive.alive_file("worker"), (long_ago, long_ago))
    assert not alive.is_alive("worker")
