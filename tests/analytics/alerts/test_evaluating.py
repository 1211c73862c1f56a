"""The numbers of alerts: equal to plain Python and to the published queries, and when they are read."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import Mock
from uuid import UUID

import duckdb
import pytest
from django.core.management import call_command

from analytics import tasks
from analytics.jobs import alerts as evaluating
from analytics.jobs.alerts import evaluate_service, evaluate_tenant
from analytics.models import Alert, AlertDelivery, AlertFiring, AlertKind, Build, TenantHealth
from analytics.queues import ALERTS, count_failing_jobs
from analytics.watch.alert_kinds import ALERT_QUERIES, KINDS, alert_sql
from analytics.words.alert_numbers import describe_value
from logs.audit import Reader
from logs.layout import day_start_ms
from logs.models import PendingBuild
from logs.queries import query_rows
from logs.sql import guard
from rules.tables.warehouse import WarehouseTables
from tenantadmin.lib.core import outgoing
from tenantadmin.lib.core.outgoing import Answer
from tenantadmin.lib.core.timestamps import epoch_ms, now
from tenantadmin.lib.database.connections import Busy
from tenantadmin.lib.objectstore import StoreError, default_store
from tests.analytics.alerts.support import make_alert, messages, read_number
from tests.killing import Killed, killed_at
from tests.objects import save_entries
from tests.sending import make_all_due, send_all, send_in_line

if TYPE_CHECKING:
    from tests.factories import World


pytestmark = pytest.mark.django_db

HOUR: Final = 3_600_000
#: The days of the random logs, and the last one.
DAYS: Final = 40
LAST: Final = dt.date(2026, 3, 31)
MISSES: Final = ("MISS", "BYPASS", "PASSTHROUGH")
Entry = dict[str, Any]


def random_log(chance: random.Random) -> list[tuple[dt.date, Entry]]:
    """Return entries of most of the days, fewer at the end, some with a clock that is far ahead."""
    log: list[tuple[dt.date, Entry]] = []
    for number in range(DAYS):
        day = LAST - dt.timedelta(days=number)
        for _ in range(chance.choice([0, 3, 20, 60])):
            status = chance.choices(["HIT", "ERROR", "HOLD", *MISSES], [8, 1, 1, 3, 1, 1])[0]
            entry: Entry = {
                "logId": f"l{len(log)}",
                "timestamp": day_start_ms(day) + chance.randrange(-2 * HOUR, 24 * HOUR),
                "cacheStatus": status,
                "standardizedSql": f"SELECT {chance.randrange(4)}",
            }
            if status in MISSES and chance.random() < 0.8:
                entry["warehouseExecutionTimeMs"] = chance.choice([-1, 0, 100, 2_500])
            if chance.random() < 0.05:
                entry["timestamp"] += 10 * 24 * HOUR
            log.append((day, entry))
    return log


def store(world: World, log: Sequence[tuple[dt.date, Entry]]) -> None:
    for day in {day for day, _ in log}:
        save_entries(world.tenant.pk, day, [entry for own, entry in log if own == day])
    call_command("rebuild", tenant=world.tenant.pk)


def judge(kind: str, log: Sequence[tuple[dt.date, Entry]], *, hours: int) -> float | None:
    """Return the number of an alert, in plain Python."""
    last = max(day for day, _ in log)
    first = last - dt.timedelta(days=-(-hours // 24) + (28 if kind != "errors" else 0))
    read = [
        entry for day, entry in log if first <= day and entry["timestamp"] < day_start_ms(day) + 24 * HOUR
    ]
    newest = max(entry["timestamp"] for entry in read)
    recent = [entry for entry in read if entry["timestamp"] > newest - hours * HOUR]
    earlier = [entry for entry in read if entry["timestamp"] <= newest - hours * HOUR]
    if kind == "errors":
        failed = sum(entry["cacheStatus"] == "ERROR" for entry in recent)
        return 0.0 if failed < 3 else float(100 * failed / len(recent))
    if kind == "hit-rate-fell":
        parts = [
            [entry for entry in part if entry["cacheStatus"] in ("HIT", *MISSES)]
            for part in (earlier, recent)
        ]
        if min(map(len, parts)) < 50:
            return None
        before, after = (sum(entry["cacheStatus"] == "HIT" for entry in part) / len(part) for part in parts)
        return float(100 * (before - after))
    costs: dict[str, list[int]] = {}
    for entry in read:
        if entry.get("warehouseExecutionTimeMs", -1) >= 0:
            costs.setdefault(entry["standardizedSql"], []).append(entry["warehouseExecutionTimeMs"])
    saved = [
        sum(
            fmean(costs[entry["standardizedSql"]])
            for entry in part
            if entry["cacheStatus"] == "HIT" and entry["standardizedSql"] in costs
        )
        for part in (earlier, recent)
    ]
    before_hours = (newest - min(entry["timestamp"] for entry in read)) / HOUR - hours
    if before_hours < hours or not saved[0]:
        return None
    return float(100 * (1 - (saved[1] / hours) / (saved[0] / before_hours)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_the_numbers_of_random_logs(world: World, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    log = random_log(chance)
    store(world, log)
    alerts = [
        make_alert(world, kind=kind, window=hours, threshold=1_000)
        for kind, hours in (
            *(("errors", hours) for hours in (1, 24, 100)),
            *(("hit-rate-fell", hours) for hours in (24, 25, 168)),
            *(("savings-fell", hours) for hours in (24, 168)),
        )
    ]
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    for alert in alerts:
        alert.refresh_from_db()
        assert alert.window is not None
        expected = judge(alert.kind, log, hours=alert.window)
        assert alert.value == (expected if expected is None else pytest.approx(expected, abs=0.051)), alert
    assert any(alert.value for alert in alerts)


@pytest.mark.slow
def test_the_published_queries_give_the_numbers(world: World) -> None:
    """Each runs in the locked engine, as anybody can run it, and returns one value."""
    log = random_log(random.Random(7))  # noqa: S311
    at = day_start_ms(LAST) + 12 * HOUR
    log += [
        (LAST, {"logId": "w", "timestamp": at, "cacheStatus": "MISS", "isDataChange": True,
                "standardizedSql": "UPDATE t SET a = 1", "tables": ["t"], "statementType": "UPDATE"}),
        *(
            (LAST, {"logId": f"h{number}", "timestamp": at + 60_000, "cacheStatus": "HIT", "tables": ["t"],
                    "cacheAgeSeconds": age, "standardizedSql": "SELECT a FROM t"})
            for number, age in enumerate([3600, 3600, 0, 1])
        ),
        *(
            (LAST, {"logId": f"u{user}", "timestamp": at, "cacheStatus": "HIT", "cacheKey": "k",
                    "userName": user, "standardizedSql": "SELECT current_user()"})
            for user in ("ana", "bob")
        ),
    ]  # fmt: skip
    store(world, log)
    windows = {"errors": 100, "hit-rate-fell": 168, "savings-fell": 168, "stale-risk": 1, "leak": 1}
    for kind in ALERT_QUERIES:
        make_alert(world, kind=kind, window=windows.get(kind), threshold=1_000)
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    for alert in Alert.objects.all():
        days = evaluating._read_days(world.tenant.pk)
        span = evaluating._span(alert, last=days[-1].day)
        moment = alert.evaluated_at or now()
        statement = alert_sql(
            alert.kind, first=span.first, last=span.last, hours=alert.window or 0, now_ms=epoch_ms(moment)
        )
        published = ALERT_QUERIES[alert.kind].text
        for name, value in (
            ("first", f"'{span.first}'"), ("last", f"'{span.last}'"),
            ("hours", str(alert.window)), ("now", str(epoch_ms(moment))),
        ):  # fmt: skip
            published = published.replace(f"${name}", value)
        found = [
            query_rows(default_store(), tenant=world.tenant.pk, statement=sql, reader=Reader("x", ""))
            for sql in (statement, published)
        ]
        assert found[0] == found[1]
        before = {} if alert.before is None else {"before": alert.before}
        assert found[0] == [{"value": alert.value, **before}]
        guard.check(published, duckdb.connect())
    assert set(Alert.objects.exclude(before=None).values_list("kind", flat=True)) == {
        "hit-rate-fell",
        "savings-fell",
    }
    values = dict(Alert.objects.values_list("kind", "value"))
    assert (values["stale-risk"], values["leak"]) == (50.0, 1.0)


def test_tables_that_show_each_user_other_rows_count_as_leaks(world: World, monkeypatch: Any) -> None:
    entries = [
        {"logId": user, "timestamp": day_start_ms(LAST), "cacheStatus": "HIT", "cacheKey": "k",
         "userName": user, "standardizedSql": "SELECT * FROM x", "tables": ["sales.$first'"]}
        for user in ("ana", "bob")
    ]  # fmt: skip
    store(world, [(LAST, entry) for entry in entries])
    alert = make_alert(world, kind="leak")
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    alert.refresh_from_db()
    assert alert.value == 0.0
    Alert.objects.update(took_ms=0)
    tables = WarehouseTables(per_user=("sales.$first'",))
    monkeypatch.setattr(evaluating, "read_tables", lambda _: tables)
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    alert.refresh_from_db()
    assert alert.value == 1.0


def test_a_late_log_is_measured_from_its_newest_entry(world: World) -> None:
    moment = now()
    newest = epoch_ms(moment) - 150 * 60_000
    ahead = epoch_ms(moment) + HOUR
    day = moment.date()
    store(
        world,
        [
            (day, {"logId": f"l{at}", "timestamp": at, "cacheStatus": "HIT"})
            for at in (newest, newest - 1, ahead)
        ],
    )
    alert = make_alert(world, kind="log-late", threshold=120, window=None)
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    alert.refresh_from_db()
    assert alert.value in {150.0, 151.0}
    assert messages(alert) == [("started", "queued")]
    # It is read each time, because it is about now.
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    assert AlertFiring.objects.count() == 1


def entries(day: dt.date, *, failed: int, number: int = 100) -> list[tuple[dt.date, Entry]]:
    return [
        (day, {"logId": f"{day} {index}", "timestamp": day_start_ms(day) + index,
               "cacheStatus": "ERROR" if index < failed else "HIT"})
        for index in range(number)
    ]  # fmt: skip


def test_messages_say_both_parts_of_a_difference(world: World) -> None:
    def of(day: dt.date, *, hits: int) -> list[tuple[dt.date, Entry]]:
        common = {"standardizedSql": "SELECT 1", "warehouseExecutionTimeMs": 1_000}
        return [
            (day, {"logId": f"{day} {index}", "timestamp": day_start_ms(day) + index * 60_000, **common,
                   "cacheStatus": "HIT" if index < hits else "MISS"})
            for index in range(60)
        ]  # fmt: skip

    store(world, [*of(LAST - dt.timedelta(days=2), hits=40), *of(LAST, hits=20)])
    alerts = [make_alert(world, kind=kind, window=24) for kind in ("hit-rate-fell", "savings-fell")]
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    texts = "\n".join(alert.deliveries.get().content["text"] for alert in alerts)
    assert texts == (
        "The last 24 h of the log have a hit rate of 33.4%, against 66.7% in the 28 days before: 33.3 points "
        "less (threshold: 5 points).\n"
        "The last 24 h of the log have 0.8 s of warehouse time saved per hour, against 1.6 s in the "
        "28 days before: 48.0% less (threshold: 5.0%)."
    )


@pytest.mark.parametrize(
    ("value", "before", "said"),
    [
        (-0.1, 100.0, "a hit rate of 100%, against 100% in the 28 days before: 0.1 points more"),
        (0.1, 0.0, "a hit rate of 0%, against 0% in the 28 days before: 0.1 points less"),
    ],
)
def test_rounded_parts_stay_hit_rates(value: float, before: float, said: str) -> None:
    assert describe_value(KINDS["hit-rate-fell"], value=value, before=before) == said


def take_due_tenants() -> set[UUID | None]:
    return {alert.tenant_id for alert in ALERTS.take(limit=99)}


def test_the_build_of_a_day_makes_alerts_due(world: World) -> None:
    alert = make_alert(world)
    other = make_alert(world, tenant=world.stranger_tenant)
    assert take_due_tenants() == {world.tenant.pk, world.stranger_tenant.pk}
    assert take_due_tenants() == set()
    store(world, entries(LAST, failed=10))
    assert take_due_tenants() == {world.tenant.pk}
    tasks.evaluate_alerts(str(world.tenant.pk))
    alert.refresh_from_db()
    other.refresh_from_db()
    assert (alert.value, other.value) == (10.0, None)
    assert messages(alert) == [("started", "queued")]
    Alert.objects.update(due_at=now())
    assert take_due_tenants() == {world.tenant.pk, world.stranger_tenant.pk}
    # The clock was set back by two hours.
    Alert.objects.update(due_at=now() + dt.timedelta(hours=2))
    assert take_due_tenants() == {world.tenant.pk, world.stranger_tenant.pk}
    assert take_due_tenants() == set()


def test_an_alert_that_is_off_or_of_a_deleted_tenant_is_not_evaluated(world: World) -> None:
    store(world, entries(LAST, failed=10))
    alert = make_alert(world, enabled=False)
    gone = make_alert(world, tenant=world.stranger_tenant)
    world.stranger_tenant.deleted_at = now()
    world.stranger_tenant.save()
    assert take_due_tenants() == set()
    for tenant in (world.tenant, world.stranger_tenant):
        evaluate_tenant(default_store(), tenant=tenant.pk)
    assert not Alert.objects.exclude(evaluated_at=None).exists()
    assert not messages(alert)
    assert not messages(gone)


def test_nothing_is_read_again_while_the_log_is_the_same(world: World, monkeypatch: Any) -> None:
    store(world, entries(LAST, failed=10))
    alert = make_alert(world)
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    with monkeypatch.context() as patch:
        patch.setattr(evaluating, "open_log", lambda *_: pytest.fail("the log was read"))
        evaluate_tenant(default_store(), tenant=world.tenant.pk)
    Alert.objects.update(took_ms=0)
    store(world, entries(LAST + dt.timedelta(days=1), failed=0))
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    assert messages(alert) == [("started", "queued"), ("ended", "queued")]


def test_an_alert_that_takes_long_rests(world: World, monkeypatch: Any) -> None:
    store(world, entries(LAST, failed=10))
    alert = make_alert(world)
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    moment = now()
    Alert.objects.update(took_ms=3_000, evaluated_at=moment)
    store(world, entries(LAST + dt.timedelta(days=1), failed=0))
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    alert.refresh_from_db()
    assert (alert.value, alert.due_at) == (10.0, moment + dt.timedelta(seconds=60))
    monkeypatch.setattr(evaluating, "now", lambda: moment + dt.timedelta(seconds=61))
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    alert.refresh_from_db()
    assert alert.value == 0.0


@pytest.mark.parametrize(("minutes", "value"), [(9, 10.0), (11, None)])
def test_nothing_is_said_while_a_day_of_the_window_waits_for_its_build(
    world: World, minutes: int, value: float | None
) -> None:
    store(world, entries(LAST, failed=10))
    alert = make_alert(world)
    marked_at = now() - dt.timedelta(minutes=minutes)
    PendingBuild.objects.create(tenant_id=world.tenant.pk, day=LAST, marked_at=marked_at)
    # A day before the window does not matter.
    earlier = LAST - dt.timedelta(days=2)
    PendingBuild.objects.create(tenant_id=world.tenant.pk, day=earlier, marked_at=marked_at)
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    alert.refresh_from_db()
    assert alert.value == value


def test_a_store_that_fails_changes_nothing(world: World, monkeypatch: Any) -> None:
    store(world, entries(LAST, failed=10))
    alert = make_alert(world)
    failed = make_alert(world, kind="build-failed", threshold=1, window=None)

    def fail(*_: Any) -> None:
        raise StoreError("down")

    Build.objects.create(tenant_id=world.tenant.pk, period="2026-04-01", state="failed")
    monkeypatch.setattr(evaluating, "open_log", fail)
    evaluate_tenant(default_store(), tenant=world.tenant.pk)
    assert messages(alert) == []
    assert messages(failed) == [("started", "queued")]


def test_a_build_that_failed_counts_until_the_next_one_of_its_period_ends(world: World) -> None:
    moment = now()

    def build(period: str, state: str, minutes: int) -> None:
        started_at = moment + dt.timedelta(minutes=minutes)
        Build.objects.create(tenant_id=world.tenant.pk, period=period, state=state, started_at=started_at)

    for minutes in (0, 1):
        build("2026-03-01", "failed", minutes)
    build("2026-03-02", "failed", 0)
    build("2026-03-02", "done", 1)
    build("2026-03-03", "done", 0)
    build("2026-03-03", "failed", 1)
    build("2026-03-03", "running", 2)
    found = Build.objects.filter(tenant_id=world.tenant.pk).unrepaired().order_by("period")
    assert list(found.values_list("period", flat=True)) == ["2026-03-01", "2026-03-03"]


def test_an_evaluation_of_the_former_alert_changes_nothing(world: World) -> None:
    alert = make_alert(world)
    former = Alert.objects.get()
    alert.version, alert.threshold = Alert().version, 50.0
    alert.save()
    evaluating.record_reading(former, evaluating.Reading(10.0))
    alert.refresh_from_db()
    assert (alert.value, messages(alert)) == (None, [])


def test_one_worker_evaluates_a_tenant(world: World, monkeypatch: Any) -> None:
    make_alert(world)
    take_due_tenants()

    def busy(*_: Any, **options: Any) -> Any:
        raise Busy("x")

    monkeypatch.setattr(evaluating, "build_lock", busy)
    tasks.evaluate_alerts(str(world.tenant.pk))
    assert now() < Alert.objects.get().due_at <= now() + dt.timedelta(seconds=30)


def test_an_alert_that_cannot_be_read_rests_longer_each_time(world: World, caplog: Any) -> None:
    store(world, entries(LAST, failed=10))
    alert = make_alert(world)
    other = make_alert(world, kind="build-failed")
    pauses = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluating, "open_log", Mock(side_effect=StoreError("gone")))
        for _ in range(5):
            Alert.objects.update(due_at=now())
            assert take_due_tenants() == {world.tenant.pk}
            tasks.evaluate_alerts(str(world.tenant.pk))
            alert.refresh_from_db()
            pauses.append(round((alert.due_at - now()).total_seconds() / 60))
    assert pauses == [10, 20, 40, 60, 60]
    assert f"of tenant {world.tenant.pk} could not be evaluated, attempt 5: gone" in caplog.text
    other.refresh_from_db()
    assert (other.value, other.attempts) == (0, 0)
    assert count_failing_jobs()["alerts"] == 1


class TestService:
    """The alerts about the whole service."""

    @pytest.fixture(autouse=True)
    def _channels(self, settings: Any) -> None:
        settings.SERVICE_ALERT_CHANNELS = ["ops@example.org", "https://hooks.example.org/ops"]

    def firing(self) -> dict[str, float]:
        rows = AlertFiring.objects.filter(ended_at=None)
        return dict(rows.values_list("alert__kind", "value"))

    def test_builds_that_wait_fail_or_stop(self, world: World) -> None:
        evaluate_service()
        assert self.firing() == {}
        moment = now()
        TenantHealth.objects.create(tenant_id=world.tenant.pk, updated_at=moment - dt.timedelta(minutes=61))
        PendingBuild.objects.create(
            tenant_id=world.tenant.pk, day=LAST, attempts=4, marked_at=moment - dt.timedelta(minutes=31)
        )
        for _ in range(2):
            evaluate_service()
        assert self.firing() == {"log-late": 61.0, "build-failed": 1.0, "queue-age": 31.0}
        alert = Alert.objects.get(kind=AlertKind.QUEUE_AGE)
        assert alert.channels == [
            {"type": "email", "to": "ops@example.org"},
            {"type": "slack", "url": "https://hooks.example.org/ops"},
        ]
        assert messages(alert) == [("started", "queued")] * 2
        (first, _) = alert.deliveries.order_by("channel_number")
        assert first.content["text"] == "The build that waits longest waits for 31 min (threshold: 30 min)."
        assert first.content["href"] == "http://testserver/admin/"
        TenantHealth.objects.update(updated_at=now())
        PendingBuild.objects.all().delete()
        evaluate_service()
        assert self.firing() == {}
        assert messages(alert) == [("started", "queued")] * 2 + [("ended", "queued")] * 2

    def test_a_setting_of_0_and_no_channels_switch_them_off(self, world: World, settings: Any) -> None:
        PendingBuild.objects.create(
            tenant_id=world.tenant.pk, day=LAST, attempts=4, marked_at=now() - dt.timedelta(minutes=31)
        )
        settings.SERVICE_ALERT_FAILED_BUILDS = 0
        evaluate_service()
        assert self.firing() == {"queue-age": 31.0}
        settings.SERVICE_ALERT_CHANNELS = []
        evaluate_service()
        assert self.firing() == {}
        assert not Alert.objects.filter(enabled=True).exists()


#: ``ALERT_HISTORIES=2000`` tries others too.
HISTORIES: Final = int(os.environ.get("ALERT_HISTORIES", "60"))
PARTS: Final = 4
STEPS: Final = 6
THRESHOLD: Final = 5.0
CHANNEL: Final = {"type": "webhook", "url": "https://hooks.example.org/"}


class Stub:
    """A receiver that fails sometimes, and sometimes the worker is killed before it reads the answer."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.is_calm = False
        #: The types of messages by id.
        self.arrived: dict[str, str] = {}
        self.repeated = 0

    def post(self, url: str, *, body: bytes, headers: dict[str, str], **_: Any) -> Answer:
        identity, kind = headers["webhook-id"], json.loads(body)["type"]
        self.repeated += identity in self.arrived
        assert self.arrived.setdefault(identity, kind) == kind
        fate = 1.0 if self.is_calm else self.chance.random()
        if fate < 0.1:
            raise Killed
        return Answer(500 if fate < 0.3 else 200)


def crossings(numbers: list[float | None]) -> list[str]:
    """Return the types of the messages that a history of numbers must give."""
    kinds, fires = [], False
    for number in numbers:
        # A firing ends a tenth below the threshold.
        if number is not None and (number < 4.5 if fires else number >= THRESHOLD):
            fires = not fires
            kinds.append("alert.started" if fires else "alert.ended")
    return kinds


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_one_message_for_each_crossing(world: World, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # One message after the other, so that a history is the same in every run.
    send_in_line(monkeypatch)
    total = repeated = 0
    for seed in range(part, HISTORIES, PARTS):
        chance = random.Random(seed)  # noqa: S311
        stub = Stub(chance)
        monkeypatch.setattr(outgoing, "post", stub.post)
        alert = make_alert(world, threshold=THRESHOLD, channels=[CHANNEL])
        numbers: list[float | None] = [chance.choice([None, 0.0, 4.4, 4.9, 5.0, 9.0]) for _ in range(STEPS)]
        for number in numbers:
            for _ in range(chance.randrange(3)):
                with killed_at(chance.randrange(1, 9), before=chance.random() < 0.5):
                    read_number(alert, number)
            # Beat starts it again.
            read_number(alert, number)
            with killed_at(chance.randrange(1, 12), before=chance.random() < 0.5):
                send_all()
            if chance.random() < 0.5:
                make_all_due()
        stub.is_calm = True
        while AlertDelivery.objects.filter(state="queued").exists():
            make_all_due()
            send_all()
        expected = crossings(numbers)
        # Failures change the order of messages, and never their number.
        assert sorted(stub.arrived.values()) == sorted(expected), (seed, numbers)
        assert AlertFiring.objects.filter(alert=alert).count() == expected.count("alert.started")
        assert set(alert.deliveries.values_list("state", flat=True)) <= {"delivered"}
        total += len(expected)
        repeated += stub.repeated
    assert total > HISTORIES / PARTS
    assert repeated > 0
