"""The staff's page of the service itself: jobs, queues, beat, workers, servers."""

from __future__ import annotations

import datetime as dt
import json
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from redis import Redis

from analytics.models import Build, Mining, ReplayRun
from analytics.queues import note_beat
from logs.models import PendingBuild
from tenantadmin.backoffice import system
from tenantadmin.backoffice.system import Servers, read_servers
from tenantadmin.lib.core.probes import CACHE_SECONDS, Probes
from tenantadmin.lib.core.queues import BUILDING, QUEUES, QueueState, read_queues
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.http import health
from tests.admin.filling import make_row
from tests.admin.staff import cells, text_of

if TYPE_CHECKING:
    from django.test import Client

    from tests import factories

PAGE = "/admin/system/"


@pytest.fixture
def redis(settings: Any) -> Iterator[Redis]:
    cache.clear()
    with Redis.from_url(settings.REDIS_URL) as client:
        yield client
        client.delete(*QUEUES)
    cache.clear()


def show(staff: Client, **query: str) -> str:
    answer = staff.get(PAGE, query)
    assert answer.status_code == 200
    return text_of(answer.content.decode().partition('<div class="page">')[2] or answer.content.decode())


class TestJobs:
    def test_it_is_calm_without_jobs(self, staff: Client) -> None:
        shown = show(staff)
        assert "Days to build 0 no day is stale Oldest day to build, waiting for – " in shown
        assert "Builds under way 0" in shown
        assert "No replay is queued or running." in shown
        assert "No search is queued or running." in shown

    def test_waiting_and_running_jobs(self, staff: Client, world: factories.World) -> None:
        tenant = world.tenant.pk
        for day, attempts in ((dt.date(2026, 1, 2), 0), (dt.date(2026, 1, 1), 4), (None, 0)):
            PendingBuild.objects.create(
                tenant_id=tenant, day=day, attempts=attempts, marked_at=now() - dt.timedelta(minutes=3)
            )
        Build.objects.create(tenant_id=tenant, period="2026-01-01")
        make_row(ReplayRun, tenant_id=tenant, state="running", progress=0.25)
        make_row(ReplayRun, tenant_id=tenant, state="done")
        make_row(Mining, tenant_id=tenant, state="queued", progress=0)
        make_row(Mining, tenant_id=uuid4(), state="failed")
        shown = show(staff)
        assert "Days to build 2 the oldest is 2026-01-01 Oldest day to build, waiting for 3.0 min" in shown
        assert "Builds that failed several times 1" in shown
        assert "Builds under way 1" in shown
        assert shown.count("Warehouse") == 2
        assert "Warehouse running 25.0%" in shown
        assert "Warehouse queued 0%" in shown
        assert "Service 0.2.0 Contract " in shown

    def test_repeatedly_failed_builds_have_a_list(self, staff: Client, world: factories.World) -> None:
        for month, attempts in ((1, 3), (2, 4)):
            day = dt.date(2026, month, 1)
            PendingBuild.objects.create(tenant_id=world.tenant.pk, day=day, attempts=attempts)
        address = f"{reverse('admin:logs_pendingbuild_changelist')}?failing=yes"
        assert f'<a href="{address}">show the list</a>' in staff.get(PAGE).content.decode()
        assert cells(staff.get(address).content.decode(), "attempts") == [("attempts", "4")]

    def test_queries_do_not_grow_with_the_jobs(self, staff: Client, world: factories.World) -> None:
        counts = []
        for _ in range(2):
            for _ in range(2):
                make_row(ReplayRun, state="queued")
                make_row(Mining, state="running")
            with CaptureQueriesContext(connection) as captured:
                show(staff)
            counts.append(len(captured))
        assert counts[0] == counts[1] <= 10

    def test_jobs_are_found_by_index(self, db: None) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
        replays = ReplayRun.objects.filter(state__in=ReplayRun.UNDER_WAY).order_by("requested_at", "pk")
        minings = Mining.objects.filter(state__in=Mining.UNDER_WAY).order_by("requested_at", "pk")
        assert "replay_under_way" in replays[:20].explain()
        assert "mining_under_way" in minings[:20].explain()


class TestServers:
    def test_each_says_how_it_is(self, staff: Client, redis: Redis) -> None:
        note_beat()
        redis.lpush(BUILDING, json.dumps({"headers": {"sent_at": time.time() - 400}}), json.dumps({}))
        redis.rpush(BUILDING, json.dumps({"headers": {"sent_at": time.time() - 900}}))
        fresh(system)
        html = staff.get(PAGE, {"part": "servers"}).content.decode()
        shown = text_of(html)
        for name in ("Database", "Redis", "Object store"):
            assert f"{name} no answer" not in shown
        assert "Workers none answers" in shown
        assert "Building days 3 15.0 min" in shown
        assert "Everything else 0 –" in shown
        assert html.count('class="number bad"') == 1
        assert "Regular jobs last run" in shown

    def test_no_server_answers(self, staff: Client, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail() -> Any:
            raise ConnectionError("gone")

        broker = Probes(dict.fromkeys(("queues", "beat", "workers"), fail), deadline=1)
        monkeypatch.setattr(system, "_broker", broker)
        monkeypatch.setattr(health, "readiness", health.Readiness(dict.fromkeys(system._NAMES, fail)))
        shown = show(staff, part="servers")
        assert shown.count("no answer in time") == 4
        assert "Regular jobs no run is known" in shown
        assert "Redis did not answer in time." in shown

    @pytest.mark.parametrize(("age", "is_late"), [(None, True), (0.0, False), (60.0, False), (60.1, True)])
    def test_beat_is_late_after_a_minute(self, age: float | None, is_late: bool) -> None:
        assert Servers({}, None, None, age).is_beat_late == is_late

    def test_a_queue_is_late_after_five_minutes(self) -> None:
        queues = [QueueState("a", 1, 300.0), QueueState("b", 1, 300.1), QueueState("c", 0, None)]
        assert Servers({}, queues, None, None).late_queues == {"b"}
        assert Servers({}, None, None, None).late_queues == set()

    def test_a_queue_knows_its_first_task(self, redis: Redis) -> None:
        redis.rpush(BUILDING, json.dumps({"headers": {"sent_at": time.time() + 100}}))
        found = {queue.name: (queue.length, queue.age_seconds) for queue in read_queues()}
        assert found == {**dict.fromkeys(QUEUES, (0, None)), BUILDING: (1, 0.0)}

    def test_servers_are_asked_by_their_names(self, db: None, redis: Redis) -> None:
        assert list(read_servers().answers) == ["Database", "Redis", "Object store"]

    def test_a_kernel_without_landlock_is_shown(
        self, staff: Client, redis: Redis, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("logs.sql.sandbox.landlock_version", lambda: 3)
        assert "Sandbox" not in show(staff, part="servers")
        monkeypatch.setattr("logs.sql.sandbox.landlock_version", lambda: -1)
        assert "Sandbox of queries the kernel lacks landlock" in show(staff, part="servers")


class TestProbes:
    """What asks servers never waits longer than its deadline."""

    def test_a_probe_that_hangs_holds_one_thread_and_answers_later(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock, begun, goes_on = [100.0], threading.Event(), threading.Event()
        runs = []

        def hang() -> str:
            runs.append(1)
            begun.set()
            goes_on.wait(30)
            return "late"

        monkeypatch.setattr("tenantadmin.lib.core.probes.monotonic", lambda: clock[0])
        probes = Probes({"slow": hang}, deadline=0.01)
        for _ in range(3):
            assert probes.ask() == {"slow": None}
            assert begun.wait(30)
            clock[0] += CACHE_SECONDS
        goes_on.set()
        probes._deadline = 30
        late = probes.ask()["slow"]
        assert late is not None
        assert (late.value, late.seconds) == ("late", 3 * CACHE_SECONDS)
        assert runs == [1]

    def test_a_failing_probe_has_no_answer(self) -> None:
        assert Probes({"a": lambda: 1 // 0}, deadline=5).ask() == {"a": None}


def fresh(module: Any) -> None:
    """Forget the last answers of the broker."""
    module._broker._expires_at = 0.0
