"""A query opens a file that is gone, because its day was built again and the old file deleted meanwhile."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command

from logs import queries
from logs.layout import day_start_ms
from logs.models import Partition, QueryRun
from logs.sources import log_source
from rules.write import write_ruleset
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.conftest import ApiClient
from tests.objects import save_entries

if TYPE_CHECKING:
    from tests.factories import World

DAY = date(2026, 3, 2)
COUNT = {"sql": "SELECT count(*) AS n FROM proxy_logs"}


def build(world: World, *, entries: int) -> None:
    """Build the day of so many entries."""
    start = day_start_ms(DAY)
    made = ({"timestamp": start + number} for number in range(entries))
    save_entries(world.tenant.pk, DAY, made, name=f"00/{entries}.json")
    call_command("rebuild", tenant=world.tenant.pk)


def lose_file(world: World) -> None:
    default_store().delete(Partition.objects.get(tenant_id=world.tenant.pk).file)


@pytest.fixture
def moving(world: World, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Each number in the list: so many entries are added, and the old file deleted, before a file is read."""
    build(world, entries=1)
    added: list[int] = []

    def list_and_move(*arguments: Any, **options: Any) -> Any:
        source = log_source(*arguments, **options)
        if added:
            lose_file(world)
            build(world, entries=added.pop(0))
        return source

    monkeypatch.setattr(queries, "log_source", list_and_move)
    return added


def query(world: World) -> Any:
    return ApiClient(factories.sign_in(world.member)).post(f"/tenants/{world.tenant.pk}/query", COUNT)


def test_the_new_build_is_read(world: World, moving: list[int]) -> None:
    moving.append(2)
    answer = query(world)
    assert json.loads(b"".join(answer))["rows"] == [{"n": 3}]
    assert [run.outcome for run in QueryRun.objects.all()] == ["ok"]


def test_a_log_that_moves_twice_is_a_503(world: World, moving: list[int]) -> None:
    moving += [2, 3]
    answer = query(world)
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert answer.json()["message"] == "Days of the log are being built again. Try again in a moment."
    assert [run.outcome for run in QueryRun.objects.all()] == ["service_busy"]


def test_a_preview_reads_the_new_build(world: World, moving: list[int]) -> None:
    rule = {"id": "r", "conditions": {"tables": {"containsAny": ["sales.*"]}}, "ttlSeconds": 60}
    write_ruleset(tenant_id=world.tenant.pk, document={"rules": [rule]}, actor=world.owner.email)
    token = factories.pat_token(world.owner, "cache-admin", tenants=[str(world.tenant.pk)])
    moving.append(2)
    answer = ApiClient(token).post(f"/tenants/{world.tenant.pk}/rules/r/invalidations/preview")
    assert answer.status_code == 200
    assert moving == []


def test_a_lost_file_of_the_current_build_is_a_fault(world: World) -> None:
    build(world, entries=1)
    lose_file(world)
    assert query(world).status_code == 500
    assert [run.outcome for run in QueryRun.objects.all()] == ["internal_error"]
