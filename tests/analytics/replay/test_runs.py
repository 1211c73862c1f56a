"""Runs of replays: queue, caps, cancelling, lost workers, rebuilt days, and the REST operations."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import date, timedelta
from io import StringIO
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import duckdb
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

from accounts.models import Event as RecordedEvent
from accounts.tenants.lifecycle import delete_tenant
from analytics import tasks
from analytics.models import ReplayRun
from analytics.numbers.days import find_stale_days, rebuild_day
from analytics.queues import REPLAYS
from analytics.replay import execution, runs
from analytics.replay.execution import NICENESS, Limit, ReplayEnded, run_at_low_priority, run_next
from analytics.replay.replayer import replay
from analytics.replay.runs import (
    TooLarge,
    TooManyReplays,
    cancel_replay,
    delete_old_replays,
    describe_replay,
    find_outdated,
    queue_replay,
)
from logs.layout import day_start_ms
from logs.partitions import GRACE, delete_superseded
from rules.drafts import create_draft, delete_draft, replace_draft
from rules.write import write_ruleset
from tenantadmin.celery import app
from tenantadmin.lib.core.errors import RateLimited
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.connections import build_lock
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.analytics.workers import Child
from tests.conftest import ApiClient
from tests.objects import save_entries

if TYPE_CHECKING:
    from analytics.replay.result import ReplayResult

pytestmark = pytest.mark.django_db(transaction=True)

DAY = date(2026, 3, 2)
WINDOW = {"from": "2026-03-02", "to": "2026-03-02"}

RULES = [{"id": "reads", "conditions": {"isReadOnly": True}, "ttlSeconds": 60}]

LONGER = [RULES[0] | {"ttlSeconds": 3600}]


@pytest.fixture
def tenant(world: factories.World) -> UUID:
    """A tenant whose log has a miss, a hit and a miss of one statement."""
    write_ruleset(tenant_id=world.tenant.pk, document={"rules": RULES}, actor="a@example.org")
    put_log(world.tenant.pk, "a", (0, "MISS"), (30, "HIT"), (120, "MISS"))
    return world.tenant.pk


@pytest.fixture
def owner(world: factories.World) -> ApiClient:
    return ApiClient(factories.sign_in(world.owner))


def put_log(tenant: UUID, name: str, *requests: tuple[int, str]) -> None:
    """Store and build log entries: the second of the day, and the status."""
    lines = [
        {
            "timestamp": day_start_ms(DAY) + 1000 * second,
            "logId": f"{name}{second}",
            "cacheStatus": status,
            "matchedRule": "reads",
            "standardizedSql": "SELECT 1",
            "isReadOnly": True,
            "warehouseExecutionTimeMs": 500 if status == "MISS" else None,
        }
        for second, status in requests
    ]
    save_entries(tenant, DAY, lines, name=f"00/{name}.json")
    for day in find_stale_days(default_store(), tenant=tenant):
        rebuild_day(default_store(), tenant=tenant, day=day)


def queue(tenant: UUID, rules: Any = LONGER, **options: Any) -> ReplayRun:
    given: dict[str, Any] = {"first_day": DAY, "last_day": DAY, "warmup_days": 1, "gateway": {}}
    return queue_replay(tenant_id=tenant, rules=rules, actor="a@example.org", **given | options)


def result(run: ReplayRun) -> Any:
    assert run.result is not None
    return run.result


def run_all(tenant: UUID) -> None:
    while run_next(default_store(), tenant_id=tenant):
        pass


def state(run: ReplayRun) -> tuple[str, str]:
    run.refresh_from_db()
    return run.state, run.error


def test_a_run_replays_the_log(tenant: UUID) -> None:
    run = queue(tenant)
    assert state(run) == ("queued", "")
    assert run_next(default_store(), tenant_id=tenant)
    assert state(run) == ("done", "")
    assert run.progress == 1
    assert result(run)["total"]["hits"] == {"low": 2, "likely": None, "high": 2}
    assert result(run)["against"]["total"]["hits"] == {"low": 1, "likely": None, "high": 1}
    assert [(row["from"], row["to"], row["count"], row["bounds"]) for row in result(run)["moved"]] == [
        ("MISS", "HIT", 1, {"low": 1, "likely": None, "high": 1})
    ]
    assert result(run)["calibration"]["grade"] == "good"
    assert result(run)["against"]["seq"] == 1
    assert judgement(run) == (False, "Publish them.")
    agrees, counted, caveat, *_ = describe_replay(run)["notes"]
    assert agrees.startswith("The log of these days has 1 hit in 3 requests, as the overview has.")
    assert "The other 0 wait, are refused or fail." in counted
    assert caveat.startswith("Writes past the Gateway are not in the log")
    assert not run_next(default_store(), tenant_id=tenant)


def judgement(run: ReplayRun) -> tuple[bool, str]:
    shown = describe_replay(run, find_outdated(run))["judgement"]
    assert shown.get("isAgainstEarlier", False) == ("not the rules in force" in shown["text"])
    return shown.get("isOutdated", False), shown["next"]


def why(run: ReplayRun) -> list[str]:
    return list(find_outdated(run).reasons)


def write(tenant: UUID, rules: Any) -> None:
    write_ruleset(tenant_id=tenant, document={"rules": rules}, actor="a@example.org")


def test_a_replay_is_outdated_while_other_rules_are_in_force(tenant: UUID) -> None:
    run = queue(tenant)
    run_all(tenant)
    run.refresh_from_db()
    write(tenant, [*RULES, {**RULES[0], "id": "other"}])
    assert why(run) == ["against revision 1, not the rules in force (revision 2)"]
    assert judgement(run) == (True, "Replay it again before you decide.")
    write(tenant, RULES)
    assert why(run) == []
    # A replay of an earlier release does not know its revision.
    result(run)["against"].pop("seq")
    assert why(run) == ["against earlier rules, not the rules in force (revision 3)"]
    run.started_at = now()
    assert why(run) == []


def test_a_replay_is_outdated_once_its_draft_is_other_or_gone(tenant: UUID) -> None:
    draft = create_draft(tenant_id=tenant, document={"rules": LONGER}, actor="a@example.org")
    run = queue(tenant, None, draft_id=draft.pk)
    run_all(tenant)
    run.refresh_from_db()
    assert why(run) == []
    document = {"rules": [*LONGER, {**RULES[0], "id": "other"}]}
    replace_draft(tenant_id=tenant, draft_id=draft.pk, document=document, actor="a@example.org")
    assert why(run) == ["of an earlier text of the draft"]
    delete_draft(tenant_id=tenant, draft_id=draft.pk, actor="a@example.org")
    assert why(run) == ["of a draft that was published or deleted"]
    assert judgement(run) == (True, "To replay these rules again, make a draft of them.")
    again = create_draft(tenant_id=tenant, document={"rules": LONGER}, actor="a@example.org")
    same = queue(tenant, None, draft_id=again.pk)
    assert (same.pk, same.subject) == (run.pk, {"draftId": str(again.pk)})
    assert why(ReplayRun.objects.get()) == []


def test_the_same_input_is_one_run_until_it_changes(tenant: UUID) -> None:
    run = queue(tenant)
    assert queue(tenant).pk == run.pk
    run_all(tenant)
    assert queue(tenant).pk == run.pk
    assert queue(tenant, warmup_days=0).pk != run.pk
    put_log(tenant, "b", (200, "MISS"))
    assert queue(tenant).pk != run.pk
    assert ReplayRun.objects.count() == 3


def test_a_failed_run_is_queued_again_under_another_id(tenant: UUID) -> None:
    run = queue(tenant)
    ReplayRun.objects.update(state=ReplayRun.State.FAILED)
    again = queue(tenant)
    assert (again.pk != run.pk, again.state, ReplayRun.objects.count()) == (True, "queued", 1)


def test_caps(tenant: UUID, settings: Any) -> None:
    with pytest.raises(TooLarge, match=r"^The replay has 32 days; at most 31 are allowed"):
        queue(tenant, last_day=DAY + timedelta(days=31))
    settings.REPLAY_MAX_ROWS = 2
    with pytest.raises(TooLarge, match=r"^The replay has 3 log entries; at most 2 are allowed"):
        queue(tenant)
    settings.REPLAY_MAX_ROWS = 3
    settings.REPLAY_QUEUE = 2
    for ttl in (1, 2):
        queue(tenant, [RULES[0] | {"ttlSeconds": ttl}])
    with pytest.raises(TooManyReplays) as refused:
        queue(tenant)
    assert refused.value.headers == {"Retry-After": "300"}
    run_all(tenant)
    settings.REPLAY_QUEUE = 9
    settings.REPLAY_LIMIT = "2 per hour"
    queue(tenant)
    queue(tenant)
    queue(tenant, warmup_days=0)
    with pytest.raises(RateLimited) as limited:
        queue(tenant, warmup_days=2)
    assert 3500 <= int(limited.value.headers["Retry-After"]) <= 3600


def test_a_large_log_is_sampled_unless_all_of_it_is_asked_for(tenant: UUID, settings: Any) -> None:
    settings.REPLAY_EXACT_ROWS = 3
    whole = queue(tenant)
    assert queue(tenant, is_exact=True).pk == whole.pk
    run_all(tenant)
    settings.REPLAY_EXACT_ROWS, settings.REPLAY_MAX_ROWS = 1, 2
    sampled = queue(tenant)
    with pytest.raises(TooLarge, match=r"^The replay has 3 log entries; at most 2 are allowed"):
        queue(tenant, is_exact=True)
    settings.REPLAY_MAX_ROWS = 3
    exact = queue(tenant, is_exact=True)
    # It is the same input as of a log that is not large.
    assert exact.pk == whole.pk != sampled.pk
    run_all(tenant)
    for run in (whole, sampled):
        run.refresh_from_db()
    assert "sample" not in result(whole)
    assert result(sampled)["sample"]["entries"] <= 3
    assert "billed" not in result(sampled)
    assert "billed" in result(whole)


def test_a_run_that_takes_too_long_fails(tenant: UUID, settings: Any, monkeypatch: Any) -> None:
    settings.REPLAY_TIMEOUT_SECONDS = 0.05
    monkeypatch.setattr(execution, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(execution, "replay", endless)
    run = queue(tenant)
    run_all(tenant)
    assert state(run) == ("failed", "The replay took more than 0.05 seconds. Choose fewer days.")


def endless(connection: Any, _job: Any, *, report: Any) -> Any:
    report(0.1)
    connection.execute("SELECT count(*) FROM range(1000000000000) AS a, range(1000000) AS b").fetchall()
    raise AssertionError("the query was not interrupted")


@pytest.mark.parametrize("how", ["cancel", "delete"])
def test_a_running_replay_ends_when_it_is_cancelled_or_its_tenant_deleted(
    tenant: UUID, monkeypatch: Any, how: str
) -> None:
    monkeypatch.setattr(execution, "LOOK_SECONDS", 0.01)
    started = Event()

    def start(engine: Any, job: Any, *, report: Any) -> Any:
        started.set()
        return endless(engine, job, report=report)

    monkeypatch.setattr(execution, "replay", start)
    run = queue(tenant)

    def work() -> None:
        try:
            run_next(default_store(), tenant_id=tenant)
        finally:
            connection.close()

    worker = Thread(target=work)
    worker.start()
    assert started.wait(20)
    if how == "cancel":
        assert cancel_replay(tenant_id=tenant, replay_id=run.pk, actor="b@example.org")
    else:
        delete_tenant(tenant_id=tenant, actor="a@example.org")
    worker.join(20)
    assert not worker.is_alive()
    assert state(run) == (("cancelled", "") if how == "cancel" else ("failed", "The tenant was deleted."))


def test_a_queued_replay_of_a_deleted_tenant_is_cancelled(tenant: UUID) -> None:
    run = queue(tenant)
    delete_tenant(tenant_id=tenant, actor="a@example.org")
    run_all(tenant)
    assert state(run) == ("cancelled", "The tenant was deleted.")


def test_a_cancelled_run_does_not_start(tenant: UUID) -> None:
    run = queue(tenant)
    assert cancel_replay(tenant_id=tenant, replay_id=run.pk, actor="b@example.org")
    run_all(tenant)
    assert state(run) == ("cancelled", "")
    assert not cancel_replay(tenant_id=tenant, replay_id=run.pk, actor="b@example.org")
    assert not ReplayRun.objects.exists()
    events = RecordedEvent.objects.filter(subject=str(run.pk)).order_by("id")
    assert [event.kind for event in events] == ["replay.requested", "replay.cancelled", "replay.removed"]
    assert all(event.after == {"subject": run.subject, **WINDOW} for event in events)
    assert {event.tenant_id for event in events} == {tenant}


def test_a_run_without_its_worker_has_failed(tenant: UUID) -> None:
    run = queue(tenant)
    ReplayRun.objects.update(state=ReplayRun.State.RUNNING)
    with lock_of_another_worker(tenant):
        tasks.run_replay(str(tenant))
        assert state(run) == ("running", "")
    tasks.run_replay(str(tenant))
    assert state(run) == ("failed", "The worker ended before the replay did. Request it again.")


@pytest.mark.slow
def test_a_run_of_a_killed_worker_has_failed_and_can_be_requested_again(
    tenant: UUID, object_store: Path
) -> None:
    run = queue(tenant)
    arguments = (str(connection.settings_dict["NAME"]), object_store.as_uri(), str(tenant), "replay")
    with Child("tests.analytics.endless_worker", *arguments) as worker:
        assert worker.read() == "working"
        tasks.run_replay(str(tenant))
        assert state(run) == ("running", "")
        worker.kill()
    # PostgreSQL frees the lock when it notices that the connection is closed. It is due again after a lease.
    deadline = time.monotonic() + 20
    while state(run)[0] == "running" and time.monotonic() < deadline:
        tasks.run_replay(str(tenant))
        time.sleep(0.1)
    assert state(run) == ("failed", "The worker ended before the replay did. Request it again.")
    assert REPLAYS.longest <= timedelta(seconds=60)
    again = queue(tenant)
    run_all(tenant)
    assert state(again) == ("done", "")


@contextmanager
def lock_of_another_worker(tenant: UUID) -> Iterator[None]:
    locked, end = Event(), Event()

    def hold() -> None:
        with build_lock(tenant=tenant, period="replay", wait=False):
            locked.set()
            end.wait(20)
        connection.close()

    thread = Thread(target=hold)
    thread.start()
    assert locked.wait(20)
    try:
        yield
    finally:
        end.set()
        thread.join()


def test_a_day_that_is_rebuilt_while_the_run_waits_is_read_as_it_is_then(tenant: UUID) -> None:
    run = queue(tenant)
    put_log(tenant, "b", (121, "HIT"))
    run_all(tenant)
    assert state(run) == ("done", "")
    assert result(run)["rows"]["decidable"] == 4
    # The run has the digest of what it read.
    assert queue(tenant).pk == run.pk


def test_a_day_that_is_rebuilt_while_it_is_read_is_read_as_it_was(tenant: UUID, monkeypatch: Any) -> None:
    def rebuild_and_replay(*arguments: Any, **options: Any) -> ReplayResult:
        put_log(tenant, "b", (121, "HIT"))
        # No file is deleted that a replay may still read.
        assert delete_superseded(default_store()) == 0
        assert timedelta(seconds=settings.REPLAY_TIMEOUT_SECONDS) < GRACE
        return replay(*arguments, **options)

    monkeypatch.setattr(execution, "replay", rebuild_and_replay)
    run = queue(tenant)
    run_all(tenant)
    assert state(run) == ("done", "")
    assert result(run)["rows"]["decidable"] == 3
    # The next request is of the new build.
    assert queue(tenant).pk != run.pk


def test_two_runs_with_the_same_input_are_one(tenant: UUID) -> None:
    first = queue(tenant)
    put_log(tenant, "b", (121, "HIT"))
    second = queue(tenant)
    run_all(tenant)
    assert state(first) == (
        "failed",
        "The log was rebuilt, and another replay has the same input now.",
    )
    assert state(second) == ("done", "")


def test_a_replay_has_a_low_priority_and_its_worker_keeps_its_own(tenant: UUID, monkeypatch: Any) -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    usual = priority()
    seen = []

    def note_priority(*arguments: Any, **options: Any) -> ReplayResult:
        seen.append(priority())
        return replay(*arguments, **options)

    monkeypatch.setattr(execution, "replay", note_priority)
    run = queue(tenant)
    run_all(tenant)
    assert state(run)[0] == "done"
    assert seen == [min(usual + NICENESS, 19)]
    assert priority() == usual


def test_an_interrupted_command_ends_its_replay(tenant: UUID, monkeypatch: Any) -> None:
    started, ended = Event(), Event()

    def wait(_connection: Any, _job: Any, *, report: Callable[[float], None]) -> None:
        started.set()
        try:
            while True:
                time.sleep(0.05)
                report(0.1)
        finally:
            ended.set()

    monkeypatch.setattr(execution, "replay", wait)
    run = queue(tenant)
    main = threading.get_ident()
    # A shell starts programs in the background with this signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt() -> None:
        assert started.wait(20)
        signal.pthread_kill(main, signal.SIGINT)

    interrupter = Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        run_all(tenant)
    signal.signal(signal.SIGINT, before)
    interrupter.join()
    assert ended.is_set()
    assert state(run)[0] == "cancelled"


def test_a_fault_is_recorded_without_its_details(tenant: UUID, monkeypatch: Any) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise ValueError("a secret path")

    monkeypatch.setattr(execution, "replay", fail)
    run = queue(tenant)
    run_all(tenant)
    assert state(run) == ("failed", "The replay failed. Request it again.")


def test_old_runs_are_deleted(tenant: UUID, monkeypatch: Any) -> None:
    monkeypatch.setattr(runs, "_KEPT", 2)
    made = [
        ReplayRun.objects.create(
            tenant_id=tenant,
            digest=str(days),
            state=state,
            subject={},
            rules=[],
            first_day=DAY,
            last_day=DAY,
            warmup_days=1,
            requested_at=now() - timedelta(days=days),
        ).pk
        for days, state in ((1, "done"), (2, "failed"), (3, "done"), (31, "cancelled"), (40, "queued"))
    ]
    delete_old_replays()
    assert set(ReplayRun.objects.values_list("pk", flat=True)) == {made[0], made[1], made[4]}


def test_tasks_run_the_queue(tenant: UUID, monkeypatch: Any) -> None:
    sent: list[str] = []
    monkeypatch.setattr(tasks.run_replay, "delay", sent.append)
    monkeypatch.setattr(tasks.run_replay, "apply_async", lambda given, *_, **__: sent.extend(given))
    run = queue(tenant)
    tasks.start_jobs()
    assert sent == [str(tenant)]
    with lock_of_another_worker(tenant):
        tasks.run_replay(str(tenant))
    assert state(run) == ("queued", "")
    tasks.run_replay(str(tenant))
    assert state(run) == ("done", "")
    # It starts the next one, of which there is none.
    assert sent == [str(tenant)] * 2
    tasks.run_replay(str(tenant))
    assert len(sent) == 2


def test_replays_have_a_queue_that_every_worker_serves() -> None:
    assert set(app.amqp.queues) == {"celery", "finding", "building", "cleaning", "replays"}
    assert app.amqp.router.route({}, tasks.run_replay.name)["queue"].name == "replays"
    assert app.amqp.router.route({}, tasks.watch_service.name)["queue"].name == "celery"


def test_the_operations(tenant: UUID, owner: ApiClient) -> None:
    path = f"/tenants/{tenant}/replays"
    body = {"rules": LONGER, **WINDOW}

    queued = owner.post(path, body)
    assert (queued.status_code, queued.json()["state"]) == (202, "queued")
    address = queued.headers["Location"]
    assert address == f"{path}/{queued.json()['replayId']}"
    assert "total" not in queued.json()
    run_all(tenant)
    done = owner.post(path, body)
    assert (done.status_code, done.headers["Location"]) == (200, address)
    read = owner.get(address)
    assert (read.status_code, read.json()) == (200, done.json())
    assert read.json()["subject"].keys() == {"digest"}
    assert read.json()["window"]["daysLeftOut"] == []
    assert [query["name"] for query in read.json()["evidence"]] == ["logged-statuses", "statement-means"]
    assert owner.get(address, **{"If-None-Match": read.headers["ETag"]}).status_code == 304
    listed = owner.get(path).json()
    assert listed["_links"]["items"] == [{"name": read.json()["replayId"], "href": address}]
    assert [run["state"] for run in listed["replays"]] == ["done"]
    assert owner.request("DELETE", address).json() == {
        "success": True,
        "message": "The replay is removed.",
    }
    assert owner.get(address).status_code == 404
    revision = owner.post(path, {"seq": 1, **WINDOW})
    assert (revision.status_code, revision.json()["subject"]) == (202, {"seq": 1})
    draft = create_draft(
        tenant_id=tenant, document={"name": "Longer", "rules": LONGER}, actor="a@example.org"
    )
    drafted = owner.post(path, {"draftId": str(draft.pk), "warmupDays": 0, **WINDOW})
    assert (drafted.status_code, drafted.json()["subject"]) == (202, {"draftId": str(draft.pk)})


@pytest.mark.parametrize(
    ("body", "path", "code"),
    [
        ({}, "", "invalid"),
        ({"rules": [], "seq": 1}, "", "invalid"),
        ({"seq": 9}, "/seq", "unknown-revision"),
        ({"draftId": str(uuid4())}, "/draftId", "unknown-draft"),
        ({"seq": 1, "to": "2026-03-01"}, "/to", "invalid"),
        ({"seq": 1, "to": "2026-3-3"}, "/to", "invalid"),
        ({"seq": 1, "to": "2026-05-01"}, "/from", "out-of-range"),
        ({"seq": 1, "warmupDays": 8}, "/warmupDays", "max-value"),
        ({"seq": 1, "gateway": {"nocache": "yes"}}, "/gateway/nocache", "invalid"),
        ({"seq": 1, "draft": 1}, "/draft", "unknown-property"),
    ],
)
def test_bad_requests(tenant: UUID, owner: ApiClient, body: dict[str, Any], path: str, code: str) -> None:
    answer = owner.post(f"/tenants/{tenant}/replays", WINDOW | body)
    assert answer.status_code == 400
    assert [(row["path"], row["code"]) for row in answer.json()["details"]] == [(path, code)]


def test_rules_that_do_not_pass_lint_are_refused(tenant: UUID, owner: ApiClient) -> None:
    rules = [{"id": "r", "conditions": {"tabels": "a"}}]
    answer = owner.post(f"/tenants/{tenant}/replays", {"rules": rules, **WINDOW})
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "unknown-condition-key")


def test_unknown_replays_are_not_found(tenant: UUID, world: factories.World, owner: ApiClient) -> None:
    run = queue(tenant)
    stranger = ApiClient(factories.sign_in(world.stranger))
    elsewhere = f"/tenants/{world.stranger_tenant.pk}/replays/{run.pk}"
    assert stranger.get(elsewhere).status_code == 404
    assert stranger.get(f"/tenants/{tenant}/replays/{run.pk}").status_code == 403
    assert owner.get(f"/tenants/{tenant}/replays/{uuid4()}").status_code == 404
    assert owner.request("DELETE", f"/tenants/{tenant}/replays/{uuid4()}").status_code == 404


def replay_command(tenant: UUID, *arguments: str) -> str:
    output = StringIO()
    call_command(
        *("replay", "--tenant", str(tenant), "--from", "2026-03-02", "--to", "2026-03-02", *arguments),
        stdout=output,
    )
    return output.getvalue()


def read_cells(printed: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in printed.splitlines()]


def test_the_command_prints_a_table_or_json(tenant: UUID, tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"rules": LONGER}))
    printed = replay_command(tenant, "--rules", str(file))
    assert "good: 100% of 3 log entries as in the log" in " ".join(printed.split())
    cells = read_cells(printed)
    assert ["reads", "3", "2", "1", "1", "1", "0", "0"] in cells
    assert "Caveats: writes-past-gateway-invisible, cold-start" in printed
    again = json.loads(replay_command(tenant, "--rules", str(file), "--json"))
    assert again["total"]["hits"]["low"] == 2
    assert json.loads(replay_command(tenant, "--json"))["moved"] == []
    assert ReplayRun.objects.count() == 2


def test_the_command_says_what_was_replayed_of_a_large_log(tenant: UUID, settings: Any) -> None:
    settings.REPLAY_EXACT_ROWS = 1
    printed = replay_command(tenant)
    assert "Replayed were 100% of the log entries: 3 of 1 statement with their values" in printed
    assert "Billed" not in printed
    assert "Replayed" not in replay_command(tenant, "--exact")


def test_the_command_says_where_the_log_differs(tenant: UUID) -> None:
    put_log(tenant, "b", (140, "MISS"), (150, "MISS"))
    cells = read_cells(replay_command(tenant))
    assert ["MISS", "HIT", "other-cache-state", "1"] in cells
    assert ["MISS", "HIT", "differed-before", "1"] in cells


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seq", "7"), "The request is not valid."),
        (("--rules", "/nowhere.json"), "Cannot read /nowhere.json"),
        (("--rules", __file__), "Cannot read"),
    ],
)
def test_the_command_explains_errors(tenant: UUID, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        replay_command(tenant, *arguments)


def test_work_ends_with_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = Limit(seconds=20, message="too long")

    def end_worker(_execution: Any) -> Any:
        raise SystemExit

    def work() -> None:
        with duckdb.connect(config={"threads": 1}) as engine, limit.on(engine):
            engine.execute("SELECT count(*) FROM range(1000000000000) AS a, range(1000000) AS b").fetchall()

    monkeypatch.setattr(Future, "result", end_worker)
    with pytest.raises(SystemExit):
        run_at_low_priority(work, stop=limit.stop)
    with pytest.raises(ReplayEnded, match=r"^The worker ends\.$"):
        limit.check()
