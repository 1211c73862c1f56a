"""Replays of recommendations are kept and can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from analytics.models import Mining, ReplayRun
from analytics.replay import runs
from analytics.replay.execution import run_next
from analytics.replay.runs import delete_old_replays, queue_replay
from rules.write import write_ruleset
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.analytics.advice.searching import accept, search
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from uuid import UUID


pytestmark = pytest.mark.django_db(transaction=True)


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


def test_a_result_of_an_earlier_release_is_read_back(
    tenant: UUID, client: ApiClient, world: factories.World
) -> None:
    """That release did not learn whether the Gateway keeps users apart."""
    (found,) = search(tenant)
    for row in (ReplayRun.objects.get(), Mining.objects.get()):
        stored = row.result if isinstance(row, ReplayRun) else row.report
        assert stored is not None
        assert stored["gateway"].pop("keysPerUser", "absent") != "absent"
        row.save()
    body = client.get(f"/tenants/{tenant}/recommendations").json()
    assert body["mining"]["report"]["gateway"]["keysPerUser"] is None
    reader = ApiClient(factories.sign_in(world.owner))
    replayed = reader.get(f"/tenants/{tenant}/replays/{found.replay_id}").json()
    assert (replayed["state"], replayed["gateway"]["keysPerUser"]) == ("done", None)
    assert replayed["gateway"].keys() == {"nocache", "nonDeterministic", "keysPerUser"}


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
