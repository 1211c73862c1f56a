"""Searches for recommendations: their result, limits, failures, killed workers, and the replays they keep."""

from __future__ import annotations

import json
from datetime import date
from io import StringIO
from pathlib import Path
from threading import Timer
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import connection

from accounts.tenants.lifecycle import delete_tenant
from analytics.advice import search as searches
from analytics.advice.mine import Advice, AdviceReport
from analytics.advice.recommend import queue_mining
from analytics.advice.search import run_mining, store_advice
from analytics.models import Mining, Recommendation, ReplayRun
from analytics.numbers.days import rebuild_day
from analytics.queues import MININGS
from analytics.replay import runs
from analytics.replay.execution import run_next
from analytics.replay.runs import delete_old_replays, queue_replay
from logs.layout import day_start_ms
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.connections import Busy, build_lock
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.analytics.advice.searching import ADS, accept, search
from tests.analytics.replay.streams import DAYS
from tests.analytics.workers import Child
from tests.conftest import ApiClient
from tests.objects import save_entries

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_search_recommends_savings_and_explains_refusals(tenant: UUID) -> None:
    (found,) = search(tenant)
    assert (found.kind, found.title, found.seq) == ("cache", "Cache m.ads for 12 hours", 0)
    assert (found.first_day, found.last_day) == (DAYS[0], DAYS[2])
    (rule,) = found.rules
    assert rule == {
        "id": "cache-m-ads",
        "name": "Cache m.ads",
        "enabled": True,
        "action": "cache",
        "conditions": {
            "isReadOnly": True,
            "hasNonDeterministicFunctions": False,
            "tables": {"containsAny": ["m.ads"]},
        },
        "ttlSeconds": 43200,
        "varyBy": [],
        "requireInvalidation": False,
    }
    assert found.patch == [{"op": "insert", "ruleId": "cache-m-ads", "before": None, "rule": rule}]
    assert found.predicted["gain"]["hits"] == {"low": 57, "likely": None, "high": 57}
    assert found.predicted["gain"]["savedMs"]["low"] == 57 * 5000
    assert found.evidence[0]["rows"] == [
        {
            "standardizedSql": ADS[0].statement,
            "requests": 60,
            "differentValues": 1,
            "hits": 0,
            "warehouseMs": 300_000,
        }
    ]
    report = Mining.objects.get(pk=tenant).report
    assert report is not None
    assert [(row["code"], row["requests"]) for row in report["notProposed"]] == [("too-little-to-save", 60)]
    assert report["basedOn"] == {"seq": 0, "window": {"from": "2026-03-01", "to": "2026-03-03"}}


def test_a_tenant_without_logs_gets_an_empty_list(world: factories.World) -> None:
    assert search(world.tenant.pk) == []
    mining = Mining.objects.get()
    assert mining.report == {"basedOn": {"seq": 0, "window": None}, "notProposed": []}


@pytest.mark.slow
def test_a_recommendation_not_found_again_is_superseded(tenant: UUID) -> None:
    (found,) = search(tenant)
    accept(found)
    assert search(tenant) == []
    other = factories.recommendation(Mining.objects.get(), kind="ttl")  # type: ignore[arg-type]  # has a pk
    write_ruleset(tenant_id=tenant, document={"rules": []}, actor="b@example.org")
    (again,) = search(tenant)
    assert (again.pk != found.pk, again.fingerprint == found.fingerprint) == (True, True)
    other.refresh_from_db()
    assert other.state == "superseded"


def test_the_same_log_and_rules_are_not_searched_again(tenant: UUID, monkeypatch: Any) -> None:
    (found,) = search(tenant)
    monkeypatch.setattr(searches, "mine", None)
    (again,) = search(tenant)
    assert (again.pk, again.version) == (found.pk, found.version)


def test_the_same_builds_give_the_same_bytes(tenant: UUID) -> None:
    def content() -> str:
        (found,) = search(tenant)
        names = ("fingerprint", "title", "why", "rules", "patch", "evidence", "predicted", "estimate_ms")
        report = Mining.objects.get(pk=tenant).report
        return json.dumps([{name: getattr(found, name) for name in names}, report])

    first = content()
    Mining.objects.all().delete()
    Recommendation.objects.all().delete()
    assert content() == first


def test_searches_are_limited(tenant: UUID, client: ApiClient, settings: Any) -> None:
    settings.REPLAY_LIMIT = "2 per hour"
    for _ in range(2):
        assert client.post(f"/tenants/{tenant}/recommendations").status_code == 202
        run_mining(default_store(), tenant_id=tenant)
    assert client.post(f"/tenants/{tenant}/recommendations").status_code == 429


@pytest.mark.slow
def test_a_search_of_a_killed_worker_leaves_nothing_half_done_and_starts_again(
    tenant: UUID, object_store: Path
) -> None:
    (found,) = search(tenant)
    Mining.objects.update(digest="")
    queue_mining(tenant_id=tenant, actor="x")
    arguments = (str(connection.settings_dict["NAME"]), object_store.as_uri(), str(tenant), "search")
    with Child("tests.analytics.endless_worker", *arguments) as worker:
        assert worker.read() == "working"
        with pytest.raises(Busy):
            run_mining(default_store(), tenant_id=tenant)
        worker.kill()
    Mining.objects.update(due_at=now())
    assert [row.pk for row in MININGS.take(limit=9)] == [tenant]
    # PostgreSQL frees the lock when it notices that the connection is closed.
    with build_lock(tenant=tenant, period="recommendations", wait=True):
        pass
    assert (Mining.objects.get().state, Recommendation.objects.get().version) == ("running", found.version)
    mined = run_mining(default_store(), tenant_id=tenant)
    assert mined is not None
    assert (mined.state, Recommendation.objects.get().pk) == ("done", found.pk)
    assert run_mining(default_store(), tenant_id=tenant) is None


def test_a_search_that_fails_or_takes_too_long_leaves_the_recommendations(
    tenant: UUID, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (found,) = search(tenant)
    Mining.objects.update(digest="")

    def fail(*_args: Any, **_options: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(searches, "mine", fail)
    queue_mining(tenant_id=tenant, actor="x")
    failed = run_mining(default_store(), tenant_id=tenant)
    assert failed is not None
    assert (failed.state, failed.error) == ("failed", "The search failed. Request it again.")

    def endless(engine: Any, *_args: Any, **_options: Any) -> Any:
        engine.execute("SELECT count(*) FROM range(1000000000000) AS a, range(1000000) AS b").fetchall()

    settings.REPLAY_TIMEOUT_SECONDS = 0.05
    monkeypatch.setattr(searches, "mine", endless)
    queue_mining(tenant_id=tenant, actor="x")
    failed = run_mining(default_store(), tenant_id=tenant)
    assert failed is not None
    assert (failed.state, failed.error) == ("failed", "The search took more than 0.4 seconds.")
    found.refresh_from_db()
    assert found.state == "open"


def test_a_search_ends_before_its_files_may_be_deleted(settings: Any) -> None:
    settings.REPLAY_TIMEOUT_SECONDS = 60.0
    assert searches.max_seconds() == 480
    settings.REPLAY_TIMEOUT_SECONDS = 540.0
    assert searches.max_seconds() == 540


def test_a_deleted_tenant_ends_its_search(tenant: UUID) -> None:
    queue_mining(tenant_id=tenant, actor="x")
    delete_tenant(tenant_id=tenant, actor="x")
    assert run_mining(default_store(), tenant_id=tenant) is None
    assert (Mining.objects.count(), Recommendation.objects.count()) == (0, 0)


@pytest.mark.slow
def test_the_command_waits_for_the_search_of_a_worker(tenant: UUID, object_store: Path) -> None:
    queue_mining(tenant_id=tenant, actor="x")
    arguments = (str(connection.settings_dict["NAME"]), object_store.as_uri(), str(tenant), "search")
    with Child("tests.analytics.endless_worker", *arguments) as worker:
        assert worker.read() == "working"
        end = Timer(0.5, worker.kill)
        end.start()
        call_command("recommend", tenant=tenant, stdout=StringIO())
        end.join()
    assert Mining.objects.get().state == "done"


def test_the_command_prints_the_recommendations(tenant: UUID) -> None:
    out = StringIO()
    call_command("recommend", tenant=tenant, stdout=out)
    text = out.getvalue()
    assert "Cache m.ads for 12 hours" in text
    assert "too-little-to-save" in text
    out = StringIO()
    call_command("recommend", tenant=tenant, as_json=True, stdout=out)
    assert [row["kind"] for row in json.loads(out.getvalue())["recommendations"]] == ["cache"]


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([], "The tenant has no logs."),
        ([{"isReadOnly": None}], "Days were left out: their log has nothing in a column"),
        ([{"standardizedSql": None}], "No entry of these days has a statement, a time and a status"),
        ([{}], "1 request, 1 s of warehouse time: They are too rarely asked again"),
        ([{"isReadOnly": False}], "1 request, 1 s of warehouse time: These statements change something"),
    ],
)
def test_the_command_says_why_it_found_nothing(
    entries: list[dict[str, Any]], reason: str, world: factories.World
) -> None:
    day, tenant_id = now().date(), world.tenant.pk
    base = {
        "timestamp": day_start_ms(day),
        "cacheStatus": "PASSTHROUGH",
        "standardizedSql": "SELECT a FROM t",
        "warehouseExecutionTimeMs": 1000,
        "userName": "ana",
        "statementType": "SELECT",
        "tables": ["s.t"],
        "isReadOnly": True,
        "isDataChange": False,
        "isDDL": False,
        "hasNonDeterministicFunctions": False,
        "adapterType": "snowflake",
    }
    save_entries(tenant_id, day, [{**base, **entry} for entry in entries] or [{"logId": "1"}])
    if entries:
        rebuild_day(default_store(), tenant=tenant_id, day=day)
    out = StringIO()
    call_command("recommend", tenant=tenant_id, stdout=out)
    assert out.getvalue().startswith("Nothing is recommended.\n")
    assert reason in out.getvalue()


_CONTENT = ("kind", "title", "why", "rules", "patch", "evidence", "predicted", "estimate_ms")


def test_a_recommendation_that_is_found_again_is_in_one_list(world: factories.World) -> None:
    tenant = world.tenant
    Mining.objects.create(tenant_id=tenant.pk)
    row = factories.recommendation(tenant, fingerprint="a")
    content = {name: getattr(row, name) for name in _CONTENT}
    request = SimpleNamespace(tenant_id=tenant.pk, first_day=date(2026, 3, 1), last_day=date(2026, 3, 14))

    def search(*found: str, left_out: str = "") -> None:
        advice = Advice(
            AdviceReport(not_proposed=[]),
            [{**content, "fingerprint": name} for name in found],
            [None] * len(found),
            {*left_out},
        )
        collected: Any = SimpleNamespace(request=request)
        store_advice(advice, collected=collected, seq=1, digest="")

    def listed() -> list[tuple[str, str, str]]:
        rows = Recommendation.objects.order_by("fingerprint", "state")
        return [(row.fingerprint, row.state, row.reason) for row in rows]

    others = "It was found again, but others came first: a search keeps at most 6."
    search("b", left_out="a")
    assert listed() == [("a", "superseded", others), ("b", "open", "")]
    search("b")
    assert listed() == [("a", "superseded", ""), ("b", "open", "")]
    # An earlier release left a row for each search that found it.
    older = factories.recommendation(tenant, fingerprint="a", state="superseded")
    Recommendation.objects.filter(pk=older.pk).update(mined_at="2026-01-01T00:00:00Z")
    search("a")
    assert listed() == [("a", "open", ""), ("b", "superseded", "")]
    assert Recommendation.objects.get(fingerprint="a").pk == row.pk
    # A decision stays in the history.
    Recommendation.objects.filter(pk=row.pk).update(state="dismissed", reason="no")
    search("a")
    assert listed() == [("a", "dismissed", "no"), ("a", "open", ""), ("b", "superseded", "")]


def test_a_replay_of_the_accepted_ruleset_gives_the_prediction(tenant: UUID) -> None:
    (found,) = search(tenant)
    predicted = found.predicted
    accepted = accept(found)
    run = queue_replay(
        tenant_id=tenant,
        first_day=found.first_day,
        last_day=found.last_day,
        warmup_days=1,
        gateway={},
        actor="x",
        rules=accepted.rules,
    )
    run_next(default_store(), tenant_id=tenant)
    run.refresh_from_db()
    assert run.state == ReplayRun.State.DONE
    assert run.result is not None
    assert run.result["total"] == predicted["total"]


def test_the_replay_of_a_recommendation_can_be_read(
    tenant: UUID, client: ApiClient, world: factories.World
) -> None:
    (found,) = search(tenant)
    body = client.get(f"/tenants/{tenant}/recommendations/{found.pk}").json()
    reader = ApiClient(factories.sign_in(world.owner))
    address = f"/tenants/{tenant}/replays/{body['replayId']}"
    replayed = reader.get(address).json()
    assert (replayed["state"], replayed["requestedBy"], replayed["progress"]) == ("done", "system", 1)
    assert (replayed["total"], replayed["against"]["total"]) == (
        found.predicted["total"],
        found.predicted["against"],
    )
    # Who asks for the same replay gets this one.
    asked = {"rules": found.rules, "from": "2026-03-01", "to": "2026-03-03"}
    again = reader.post(f"/tenants/{tenant}/replays", asked)
    assert (again.status_code, again.json()["replayId"]) == (200, body["replayId"])
    ReplayRun.objects.update(state="queued", result=None)
    run_next(default_store(), tenant_id=tenant)
    hour = {"publishCost": None, "finishedAt": None, "startedAt": None}
    assert reader.get(address).json() | hour == replayed | hour
    assert reader.delete(address).status_code == 200
    assert client.get(f"/tenants/{tenant}/recommendations/{found.pk}").json()["replayId"] is None


def test_replays_are_kept_while_a_recommendation_is_undecided_and_then_replaced(
    tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    (found,) = search(tenant)
    monkeypatch.setattr(runs, "_KEPT", 0)
    delete_old_replays()
    assert ReplayRun.objects.get().pk == found.replay_id
    other = {"id": "live", "action": "bypass", "conditions": {"tables": {"containsAny": ["live.*"]}}}
    write_ruleset(tenant_id=tenant, document={"rules": [other]}, actor="b@example.org")
    (again,) = search(tenant)
    assert ReplayRun.objects.get().pk == again.replay_id != found.replay_id
    accept(again)
    delete_old_replays()
    again.refresh_from_db()
    assert not ReplayRun.objects.exists()
    assert again.replay is None
