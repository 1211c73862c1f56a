"""Search, draft, accept, dismiss and reopen recommendations, by the services and by REST."""

from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from io import StringIO
from threading import Barrier
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from django.core.management import call_command
from django.db import connection

from accounts.access.scopes import Scope
from accounts.models import Event, Revision
from accounts.tenants.lifecycle import delete_tenant
from analytics import tasks
from analytics.advice import mining, recommendations
from analytics.advice.mining import find_waiting_tenants, queue_mining, run_mining
from analytics.advice.recommendations import accept_recommendation
from analytics.models import Mining, Recommendation, ReplayRun
from analytics.replay import runs
from analytics.replay.errors import ReplayEnded
from analytics.replay.execution import run_next
from analytics.replay.limit import Limit
from analytics.replay.priority import NICENESS, run_at_low_priority
from analytics.replay.runs import delete_old_replays, queue_replay
from analytics.summaries.days import find_stale_days, rebuild_day
from rules.drafts import publish_draft
from rules.models import RuleDraft
from rules.ruleset import read_ruleset
from rules.write import write_ruleset
from tenantadmin.lib.core.errors import ApiError, Conflict
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.analytics.advice.logs import Arrival, make_log, read
from tests.analytics.child import Child
from tests.analytics.replay.streams import DAYS
from tests.conftest import ApiClient
from tests.objects import save_entries

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from uuid import UUID

pytestmark = pytest.mark.django_db(transaction=True)

MINUTE = 60_000
DAY_MS = 1440 * MINUTE
#: On each of three days, 20 requests for one result of an expensive statement.
ADS = [
    read("SELECT sum(x) FROM m.ads WHERE c = ?", "m.ads", at=day * DAY_MS + number * 20 * MINUTE, ms=5000)
    for day in range(3)
    for number in range(20)
]
#: As many of another one, each for another result.
RARE = [
    read(
        "SELECT * FROM m.rare WHERE id = ?",
        "m.rare",
        at=day * DAY_MS + n * MINUTE,
        value=day * 50 + n,
    )
    for day in range(3)
    for n in range(20)
]


def put_log(tenant: UUID, arrivals: Iterable[Arrival], rules: Any = ()) -> None:
    """Store and build the log that a Gateway with these rules makes."""
    rows = make_log(arrivals, (0, rules))
    for day in DAYS:
        if of_day := [row for row in rows if row["day"] == day.isoformat()]:
            save_entries(tenant, day, of_day)
    for stale in find_stale_days(default_store(), tenant=tenant):
        rebuild_day(default_store(), tenant=tenant, day=stale)


@pytest.fixture
def tenant(world: factories.World) -> UUID:
    """A tenant without rules and a log that asks for one."""
    put_log(world.tenant.pk, [*ADS, *RARE])
    return world.tenant.pk


@pytest.fixture
def client(world: factories.World) -> ApiClient:
    scopes = (Scope.ANALYTICS_READ, Scope.CONFIG_WRITE)
    return ApiClient(factories.pat_token(world.owner, *scopes, tenants=[str(world.tenant.pk)]))


def search(tenant: UUID) -> list[Recommendation]:
    queue_mining(tenant_id=tenant, actor="system")
    found = run_mining(default_store(), tenant_id=tenant)
    assert found is not None
    assert (found.state, found.error) == ("done", "")
    return list(Recommendation.objects.filter(tenant_id=tenant, state="open").order_by("rank"))


def accept(found: Recommendation) -> Any:
    return accept_recommendation(
        tenant_id=found.tenant_id,
        recommendation_id=found.pk,
        actor="ada@example.org",
    )


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


def test_accepting_writes_the_ruleset_and_its_history_names_the_recommendation(tenant: UUID) -> None:
    (found,) = search(tenant)
    written = accept(found)
    assert [rule["id"] for rule in written.rules] == ["cache-m-ads"]
    found.refresh_from_db()
    assert (found.state, found.accepted_seq, found.decided_by) == ("accepted", 1, "ada@example.org")
    revision = Revision.objects.get(kind="rules", tenant_id=tenant, seq=1)
    assert revision.summary["recommendation"] == {
        "recommendationId": str(found.pk),
        "title": "Cache m.ads for 12 hours",
    }
    with pytest.raises(ApiError, match=r"^The recommendation is accepted; this is possible while it is open"):
        accept(found)


def test_of_two_acceptances_at_once_one_wins(tenant: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = search(tenant)

    both = Barrier(2)
    monkeypatch.setattr(recommendations, "require_etag", lambda *_, **__: both.wait(20))

    def work(_: int) -> str:
        try:
            accept_recommendation(tenant_id=tenant, recommendation_id=found.pk, actor="a@example.org")
        except Conflict as error:
            return error.code
        finally:
            connection.close()
        return "accepted"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(work, range(2))) == ["accepted", "concurrent_change"]
    assert read_ruleset(tenant).seq == 1


def test_a_ruleset_that_moved_is_a_conflict_and_changes_nothing(tenant: UUID) -> None:
    (found,) = search(tenant)
    write_ruleset(tenant_id=tenant, document={"rules": []}, actor="b@example.org")
    with pytest.raises(Conflict, match=r"^The rules are at revision 1, and the recommendation is based on"):
        accept(found)
    found.refresh_from_db()
    assert (found.state, found.version, read_ruleset(tenant).seq) == ("open", 1, 1)
    (again,) = search(tenant)
    assert (again.pk, again.seq) == (found.pk, 1)
    accept(again)


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
    monkeypatch.setattr(mining, "mine", None)
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


def test_a_dismissed_one_returns_on_its_day_or_when_it_would_save_twice_as_much(
    tenant: UUID, client: ApiClient
) -> None:
    (found,) = search(tenant)
    address = f"/tenants/{tenant}/recommendations/{found.pk}"
    until = (now().date() + timedelta(days=3)).isoformat()
    answer = client.post(f"{address}/dismiss", {"reason": "Not now.", "until": until})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["state"], body["reason"], body["until"]) == ("dismissed", "Not now.", until)
    event = Event.objects.get(kind="recommendation.dismissed")
    assert (event.subject, event.reason, event.tenant_id) == (str(found.pk), "Not now.", tenant)
    assert search(tenant) == []
    Recommendation.objects.update(until=now().date())
    (returned,) = search(tenant)
    assert returned.pk != found.pk
    assert client.post(f"{address}/reopen").json()["message"] == (
        "The same recommendation is open again. Decide that one."
    )
    returned.delete()
    Recommendation.objects.update(until=None, estimate_ms=found.estimate_ms // 2 + 1)
    assert search(tenant) == []
    Recommendation.objects.update(estimate_ms=found.estimate_ms // 2)
    (twice,) = search(tenant)
    twice.delete()
    assert client.post(f"{address}/reopen").json()["state"] == "open"
    assert Event.objects.filter(kind="recommendation.reopened").count() == 1
    assert client.post(f"{address}/reopen").status_code == 409


@pytest.mark.parametrize("day", ["2020-01-01", "today"])
def test_the_day_of_return_is_in_the_future(tenant: UUID, client: ApiClient, day: str) -> None:
    (found,) = search(tenant)
    until = now().date().isoformat() if day == "today" else day
    answer = client.post(
        f"/tenants/{tenant}/recommendations/{found.pk}/dismiss", {"reason": "x", "until": until}
    )
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "/until")


def test_a_draft_is_made_and_publishing_it_accepts(tenant: UUID, client: ApiClient) -> None:
    (found,) = search(tenant)
    address = f"/tenants/{tenant}/recommendations/{found.pk}"
    answer = client.post(f"{address}/draft")
    assert (answer.status_code, answer.json()["name"]) == (201, "Cache m.ads for 12 hours")
    assert answer["Location"].endswith(answer.json()["draftId"])
    assert client.get(address).json()["state"] == "drafted"
    assert client.post(f"{address}/draft").status_code == 409
    draft = RuleDraft.objects.get()
    publish_draft(tenant_id=tenant, draft_id=draft.pk, actor="b@example.org")
    search(tenant)
    found.refresh_from_db()
    assert (found.state, found.accepted_seq, found.decided_by) == ("accepted", 1, "b@example.org")


def test_a_deleted_draft_opens_the_recommendation_again_and_accepting_deletes_the_draft(
    tenant: UUID, client: ApiClient
) -> None:
    (found,) = search(tenant)
    address = f"/tenants/{tenant}/recommendations/{found.pk}"
    client.post(f"{address}/draft")
    RuleDraft.objects.all().delete()
    (found,) = search(tenant)
    client.post(f"{address}/draft")
    assert client.post(f"{address}/accept").status_code == 200
    assert RuleDraft.objects.count() == 0


def test_rest(tenant: UUID, client: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(tasks.mine_tenant, "delay", started.append)
    monkeypatch.setattr(tasks.mine_again, "delay", lambda tenant: started.append(f"again {tenant}"))
    address = f"/tenants/{tenant}/recommendations"
    assert client.get(address).json()["mining"] is None
    answer = client.post(address)
    assert (answer.status_code, answer["Location"], answer.json()["state"]) == (202, address, "queued")
    assert started == [str(tenant)]
    assert client.post(address).status_code == 202  # it is queued already
    event = Event.objects.get(kind="recommendations.requested")
    assert (event.subject, event.tenant_id) == (str(tenant), tenant)
    started.pop()
    run_mining(default_store(), tenant_id=tenant)
    body = client.get(address).json()
    assert body["mining"]["state"] == "done"
    (found,) = body["recommendations"]
    own = f"{address}/{found['recommendationId']}"
    assert body["_links"]["items"] == [{"name": found["recommendationId"], "href": own}]
    single = client.get(own)
    assert single.json() == found
    assert client.get(own, **{"If-None-Match": single["ETag"]}).status_code == 304
    assert client.get(f"{address}?state=accepted").json()["recommendations"] == []
    assert client.get(f"{own}/effect").status_code == 409
    assert client.request("POST", f"{own}/accept", headers={"If-Match": '"x"'}).status_code == 409
    accepted = client.request("POST", f"{own}/accept", headers={"If-Match": single["ETag"]})
    assert (accepted.status_code, accepted.json()["seq"]) == (200, 1)
    assert started == [str(tenant), f"again {tenant}"]
    effect = client.get(f"{own}/effect").json()
    assert effect == {
        "recommendationId": found["recommendationId"],
        "state": "waiting",
        "measuredAt": None,
        "period": None,
        "closedBy": None,
    }
    unknown = f"{address}/3f2b8f0c-6d2f-4f0e-9a55-0d6f6d1d9f11"
    assert client.get(unknown).status_code == 404


def test_a_caller_without_write_access_reads_but_does_not_decide(
    tenant: UUID, world: factories.World
) -> None:
    (found,) = search(tenant)
    reader = ApiClient(factories.pat_token(world.owner, Scope.ANALYTICS_READ, tenants=[str(world.tenant.pk)]))
    address = f"/tenants/{tenant}/recommendations/{found.pk}"
    assert reader.get(address).status_code == 200
    for action, body in (("draft", None), ("accept", None), ("dismiss", {"reason": "x"}), ("reopen", None)):
        assert reader.post(f"{address}/{action}", body).status_code == 403
    found.refresh_from_db()
    assert (found.state, found.version) == ("open", 1)


def test_searches_are_limited(tenant: UUID, client: ApiClient, settings: Any) -> None:
    settings.REPLAY_LIMIT = "2 per hour"
    for _ in range(2):
        assert client.post(f"/tenants/{tenant}/recommendations").status_code == 202
        run_mining(default_store(), tenant_id=tenant)
    assert client.post(f"/tenants/{tenant}/recommendations").status_code == 429


def test_a_search_of_a_killed_worker_leaves_nothing_half_done_and_starts_again(
    tenant: UUID, object_store: Path
) -> None:
    (found,) = search(tenant)
    Mining.objects.update(digest="")
    queue_mining(tenant_id=tenant, actor="x")
    arguments = (str(connection.settings_dict["NAME"]), object_store.as_uri(), str(tenant), "search")
    with Child("tests.analytics.endless_worker", *arguments) as worker:
        assert worker.read() == "working"
        assert find_waiting_tenants() == []
        worker.kill()
    # PostgreSQL frees the lock when it notices that the connection is closed. Beat looks twice a minute.
    deadline = time.monotonic() + 20
    while not find_waiting_tenants() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert find_waiting_tenants() == [tenant]
    assert (Mining.objects.get().state, Recommendation.objects.get().version) == ("running", found.version)
    mined = run_mining(default_store(), tenant_id=tenant)
    assert mined is not None
    assert (mined.state, Recommendation.objects.get().pk) == ("done", found.pk)
    assert run_mining(default_store(), tenant_id=tenant) is None


def test_jobs_run_at_low_priority_and_end_with_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    nice = run_at_low_priority(
        lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id()), stop=lambda: None
    )
    assert nice == min(before + NICENESS, 19)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
    limit = Limit(seconds=20, message="too long")

    def end_worker(_execution: Any) -> Any:
        raise SystemExit

    def endless() -> None:
        with duckdb.connect(config={"threads": 1}) as engine, limit.on(engine):
            engine.execute("SELECT count(*) FROM range(1000000000000) AS a, range(1000000) AS b").fetchall()

    monkeypatch.setattr(Future, "result", end_worker)
    with pytest.raises(SystemExit):
        run_at_low_priority(endless, stop=limit.stop)
    with pytest.raises(ReplayEnded, match=r"^The worker ends\.$"):
        limit.check()


def test_a_search_that_fails_or_takes_too_long_leaves_the_recommendations(
    tenant: UUID, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (found,) = search(tenant)
    Mining.objects.update(digest="")

    def fail(*_args: Any, **_options: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(mining, "mine", fail)
    queue_mining(tenant_id=tenant, actor="x")
    failed = run_mining(default_store(), tenant_id=tenant)
    assert failed is not None
    assert (failed.state, failed.error) == ("failed", "The search failed. Request it again.")

    def endless(engine: Any, *_args: Any, **_options: Any) -> Any:
        engine.execute("SELECT count(*) FROM range(1000000000000) AS a, range(1000000) AS b").fetchall()

    settings.REPLAY_TIMEOUT_SECONDS = 0.05
    monkeypatch.setattr(mining, "mine", endless)
    queue_mining(tenant_id=tenant, actor="x")
    failed = run_mining(default_store(), tenant_id=tenant)
    assert failed is not None
    assert (failed.state, failed.error) == ("failed", "The search took more than 0.4 seconds.")
    found.refresh_from_db()
    assert found.state == "open"


def test_a_search_ends_before_its_files_may_be_deleted(settings: Any) -> None:
    settings.REPLAY_TIMEOUT_SECONDS = 60.0
    assert mining.max_seconds() == 480
    settings.REPLAY_TIMEOUT_SECONDS = 540.0
    assert mining.max_seconds() == 540


def test_a_deleted_tenant_ends_its_search(tenant: UUID) -> None:
    queue_mining(tenant_id=tenant, actor="x")
    delete_tenant(tenant_id=tenant, actor="x")
    assert run_mining(default_store(), tenant_id=tenant) is None
    assert (Mining.objects.count(), Recommendation.objects.count()) == (0, 0)


def test_the_command_prints_the_recommendations(tenant: UUID) -> None:
    out = StringIO()
    call_command("recommend", tenant=tenant, stdout=out)
    text = out.getvalue()
    assert "Cache m.ads for 12 hours" in text
    assert "too-little-to-save" in text
    out = StringIO()
    call_command("recommend", tenant=tenant, as_json=True, stdout=out)
    assert [row["kind"] for row in json.loads(out.getvalue())["recommendations"]] == ["cache"]
