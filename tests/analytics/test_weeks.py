"""The last week of the tenants of a caller."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Revision
from accounts.tenants.lifecycle import delete_tenant
from analytics.models import TenantHealth
from tenantadmin.lib.core.timestamps import format_timestamp
from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from tests.factories import World

DAY = dt.date(2026, 3, 1)


def test_each_live_tenant_of_the_token_has_its_week(world: World) -> None:
    new = factories.make_tenant(world.account, "New", owner=world.owner)
    unnamed = factories.make_tenant(world.account, "Not named by the token", owner=world.owner)
    gone = factories.make_tenant(world.account, "Deleted", owner=world.owner)
    TenantHealth.objects.create(
        tenant_id=world.tenant.pk, last_day=DAY, rate_7=0.25, requests_7=8, misses_7=6, warehouse_ms_7=500
    )
    ids = [str(it.pk) for it in (world.tenant, new, gone)]
    token = factories.pat_token(world.owner, "analytics:read", tenants=ids)
    delete_tenant(tenant_id=gone.pk, actor=world.owner.email)
    client = ApiClient(token)
    answer = client.get("/tenants/weeks").json()
    none = {"lastDay": None, "requests": 0, "hitRate": None, "warehouseMs": 0}
    full = {"lastDay": "2026-03-01", "requests": 8, "hitRate": 0.25, "warehouseMs": 500}
    found = {week.pop("tenantId"): week for week in answer["weeks"]}
    newest = Revision.objects.filter(tenant_id=new.pk).latest("changed_at").changed_at
    assert {it.pop("changedAt") for id_, it in found.items() if id_ == str(new.pk)} == {
        format_timestamp(newest)
    }
    del found[ids[0]]["changedAt"]
    assert found == {ids[0]: full, ids[1]: none}
    assert str(unnamed.pk) not in found
    assert {(it["name"], it["href"]) for it in answer["_links"]["items"]} == {
        (tenant, f"/config/tenants/{tenant}") for tenant in ids[:2]
    }


def test_pages_follow_each_other_in_as_many_queries_for_each(world: World) -> None:
    made = [
        world.tenant,
        *(factories.make_tenant(world.account, f"T{n}", owner=world.owner) for n in range(4)),
    ]
    client = ApiClient(
        factories.pat_token(world.owner, "analytics:read", tenants=[str(it.pk) for it in made])
    )
    client.get("/tenants/weeks")

    def read(path: str) -> tuple[list[str], str | None, int]:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            body = client.get(path).json()
        ids = [week["tenantId"] for week in body["weeks"]]
        return ids, body["_links"].get("next", {}).get("href"), len(queries)

    first, following, few = read("/tenants/weeks?limit=1")
    rest, end, many = read(following.replace("limit=1", "limit=9") if following else "")
    assert first + rest == sorted(str(it.pk) for it in made)
    assert (end, few) == (None, many)


def test_a_cursor_of_another_list_is_refused(world: World) -> None:
    client = ApiClient(factories.pat_token(world.owner, "analytics:read", tenants=[str(world.tenant.pk)]))
    for cursor in ("WyJ4Il0", "WzFd", "!"):
        answer = client.get(f"/tenants/weeks?cursor={cursor}")
        assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "/cursor")
