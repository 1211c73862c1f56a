"""The steps of a new tenant."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Membership, PersonalAccessToken
from accounts.models.users import MembershipRole
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.conftest import ApiClient
from tests.objects import save_entries

if TYPE_CHECKING:
    from tests.factories import World

DAY = dt.date(2026, 3, 1)


def test_each_step_is_done_by_what_it_names(world: World) -> None:
    tenant = factories.make_tenant(world.account, "New", owner=world.owner)
    client = ApiClient(factories.sign_in(world.owner))

    def done() -> list[str]:
        body = client.get(f"/tenants/{tenant.pk}/setup").json()
        assert [step["id"] for step in body["steps"]] == [
            "address",
            "warehouse",
            "token",
            "first-request",
            "first-rule",
            "first-hit",
            "people",
        ]
        found = [step["id"] for step in body["steps"] if step["done"]]
        # Nobody must have colleagues.
        assert body["ready"] == (len({*found} - {"people"}) == 6)
        return found

    def change(**members: Any) -> None:
        path = f"/config/tenants/{tenant.pk}/config"
        assert client.put(path, {**client.get(path).json(), **members}).status_code == 200

    def log(*entries: dict[str, Any]) -> None:
        save_entries(tenant.pk, DAY, entries)
        call_command("rebuild", tenant=tenant.pk)

    assert done() == []
    change(fqdns=["new.gateway.localhost"])
    assert done() == ["address"]
    change(warehouse={"adapterType": "postgresql", "serverHostname": "db.example.org"})
    assert done() == ["address", "warehouse"]
    # The token of a dashboard is none for a Gateway.
    factories.pat_token(world.owner, "config:read", "cache-admin", tenants=[str(tenant.pk)])
    assert done() == ["address", "warehouse"]
    factories.pat_token(world.owner, "config:read", "logs:notify", tenants=[str(tenant.pk)])
    assert done() == ["address", "warehouse", "token"]
    log({"logId": "1", "cacheStatus": "MISS"})
    assert done() == ["address", "warehouse", "token", "first-request"]
    write_ruleset(tenant_id=tenant.pk, document={"rules": [{"id": "r", "enabled": False}]}, actor="x")
    assert "first-rule" not in done()
    write_ruleset(tenant_id=tenant.pk, document={"rules": [{"id": "r"}]}, actor="x")
    assert done() == ["address", "warehouse", "token", "first-request", "first-rule"]
    log({"logId": "1", "cacheStatus": "MISS"}, {"logId": "2", "cacheStatus": "HIT"})
    assert "first-hit" in done()
    Membership.objects.create(user=world.member, tenant=tenant, role=MembershipRole.MEMBER)
    assert len(done()) == 7
    PersonalAccessToken.objects.filter(owner=world.owner).delete()
    assert "token" not in done()
    factories.pat_token(world.platform_admin, "config:read", "logs:notify", tenants=["*"])
    assert "token" in done()


def test_it_takes_the_same_number_of_queries(world: World) -> None:
    client = ApiClient(factories.sign_in(world.owner))

    def count() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(f"/tenants/{world.tenant.pk}/setup").status_code == 200
        return len(captured)

    before = count()
    for number in range(5):
        write_ruleset(tenant_id=world.tenant.pk, document={"rules": [{"id": f"r{number}"}]}, actor="x")
        factories.pat_token(world.owner, "config:read", tenants=[str(world.tenant.pk)])
    assert count() == before


def test_it_says_in_how_many_ways_the_log_names_a_table(world: World) -> None:
    client = ApiClient(factories.sign_in(world.owner))
    address = f"/tenants/{world.tenant.pk}/setup"
    assert (body := client.get(address).json())["spellings"] == []
    assert body["spellingsComplete"]
    entries = [{"logId": name, "tables": [name]} for name in ("s.a", '"p".s.a', "p.s.a", "s.b")]
    save_entries(world.tenant.pk, now().date(), entries)
    call_command("rebuild", tenant=world.tenant.pk)
    body = client.get(address).json()
    assert body["spellings"] == [{"table": "p.s.a", "spellings": ['"p".s.a', "p.s.a", "s.a"]}]
    assert body["spellingsComplete"]
