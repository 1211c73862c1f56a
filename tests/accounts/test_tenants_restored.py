"""A deleted tenant comes back. Contract: States and transitions (Tenant)."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import TYPE_CHECKING

import pytest
from django.urls import reverse

from accounts.models import Account, Event, Fqdn, Membership, PermissionGrant, Revision, Tenant
from accounts.tasks import remove_tombstones
from accounts.tenants import lifecycle
from accounts.tenants.config import read_config
from accounts.tenants.errors import FqdnConflict, TenantNotDeleted, TenantNotFound
from accounts.tenants.lifecycle import create_tenant, delete_tenant, restore_tenant
from rules.ruleset import read_ruleset
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import now
from tests.accounts.support import age, configure, signed_in
from tests.racing import run_behind, uncommitted
from tests.streams import body_of

if TYPE_CHECKING:
    from django.test import Client

    from tests import factories
    from tests.conftest import ApiClient


OWNER = "owner@example.org"
NAME = "mine.gateway.localhost"
RULE = {"id": "orders", "conditions": {"tables": {"containsAny": ["sales.orders"]}}}


def delete(world: factories.World) -> None:
    delete_tenant(tenant_id=world.tenant.pk, actor=OWNER)


def restore(world: factories.World) -> object:
    return restore_tenant(tenant_id=world.tenant.pk, actor=OWNER)


def remove_early() -> None:
    """Run the job on a machine whose clock says that the tombstone is old."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifecycle, "now", lambda: now() + dt.timedelta(days=31))
        remove_tombstones()


def address(world: factories.World) -> str:
    return f"/config/tenants/{world.tenant.pk}/restore"


def manifest(client: ApiClient, since: str) -> list[tuple[str, bool]]:
    answer = client.get(f"/config/tenants/manifest?includeDeleted=true&since={since}")
    return [(item["name"], item["deleted"]) for item in body_of(answer)["_links"]["items"]]


@pytest.mark.django_db
class TestRestore:
    def test_documents_names_and_members_are_as_before(self, world: factories.World) -> None:
        tenant, client = world.tenant, signed_in(world.owner)
        configure(tenant.pk, name="Mine", fqdns=[NAME], labels={"team": "sales"})
        write_ruleset(tenant_id=tenant.pk, document={"rules": [RULE]}, actor=OWNER)
        config, rules = read_config(tenant.pk), read_ruleset(tenant.pk)
        members = Membership.objects.filter(tenant=tenant).count()
        delete(world)
        since = body_of(client.get("/config/tenants/manifest?includeDeleted=true"))["generatedAt"]
        answer = client.post(address(world))
        assert answer.status_code == 200, answer.content
        back = read_config(tenant.pk)
        assert answer.json() == client.get(f"/config/tenants/{tenant.pk}/config").json()
        assert answer["ETag"] == back.etag
        assert (back.document, back.seq) == (config.document, 3)
        again = read_ruleset(tenant.pk)
        assert (again.rules, again.seq) == (rules.rules, 3)
        assert again.cache_bust > rules.cache_bust
        fqdn = Fqdn.objects.get(name=NAME)
        assert (fqdn.tenant_id, fqdn.released_at) == (tenant.pk, None)
        assert Membership.objects.filter(tenant=tenant).count() == members == 3
        assert manifest(client, since) == [(str(tenant.pk), False)]
        last = Revision.objects.filter(tenant_id=tenant.pk, action="restore").order_by("kind")
        assert [(row.kind, row.seq, row.restored_from, row.user) for row in last] == [
            ("config", 3, 1, OWNER),
            ("rules", 3, 1, OWNER),
        ]
        (event,) = Event.objects.filter(kind="tenant.restored")
        assert (event.actor, event.subject, event.tenant_id) == (OWNER, str(tenant.pk), tenant.pk)
        configure(tenant.pk, name="Mine")
        write_ruleset(tenant_id=tenant.pk, document={"rules": []}, actor=OWNER)

    def test_it_can_be_deleted_and_restored_again(self, world: factories.World) -> None:
        configure(world.tenant.pk, fqdns=[NAME])
        for _ in range(2):
            delete(world)
            restore(world)
        assert read_config(world.tenant.pk).document["fqdns"] == [NAME]
        seqs = Revision.objects.filter(tenant_id=world.tenant.pk, kind="config").order_by("seq")
        assert [(row.seq, row.action) for row in seqs] == list(
            enumerate(["create", "update", "delete", "restore", "delete", "restore"])
        )

    def test_a_live_tenant_is_a_conflict(self, world: factories.World) -> None:
        answer = signed_in(world.owner).post(address(world))
        assert (answer.status_code, answer.json()["error"]) == (409, "conflict")

    def test_its_name_may_be_taken(self, world: factories.World) -> None:
        delete(world)
        create_tenant(account_id=world.account.pk, document={"tenantName": "WAREHOUSE"}, actor=OWNER)
        answer = signed_in(world.owner).post(address(world))
        assert (answer.status_code, answer.json()["error"]) == (409, "tenant_name_conflict")
        assert Tenant.objects.get(pk=world.tenant.pk).deleted_at is not None

    def test_an_fqdn_may_be_taken(self, world: factories.World) -> None:
        configure(world.tenant.pk, fqdns=[NAME])
        delete(world)
        Fqdn.objects.filter(name=NAME).update(tenant_id=world.stranger_tenant.pk, released_at=None)
        answer = signed_in(world.owner).post(address(world))
        assert (answer.status_code, answer.json()["error"]) == (409, "fqdn_conflict")
        assert answer.json()["details"][0]["path"] == "/fqdns/0"
        assert not Event.objects.filter(kind="tenant.restored").exists()

    def test_the_plan_may_be_full(self, world: factories.World) -> None:
        delete(world)
        Account.objects.filter(pk=world.account.pk).update(plan="free")
        create_tenant(account_id=world.account.pk, document={"tenantName": "New"}, actor=OWNER)
        answer = signed_in(world.owner).post(address(world))
        assert (answer.status_code, answer.json()["error"]) == (400, "plan_limit_exceeded")

    def test_its_account_may_be_deleted(self, world: factories.World) -> None:
        delete(world)
        Account.objects.filter(pk=world.account.pk).update(deleted_at=now())
        answer = signed_in(world.platform_admin).post(address(world))
        assert (answer.status_code, answer.json()["error"]) == (404, "account_not_found")

    def test_after_30_days_it_is_too_late(self, world: factories.World) -> None:
        delete(world)
        age(world.tenant, 30)
        assert signed_in(world.platform_admin).post(address(world)).status_code == 404

    def test_staff_restore_with_a_reason(self, staff: Client, world: factories.World) -> None:
        page = reverse("admin:tenant-undelete", args=[world.tenant.pk])
        overview = reverse("admin:tenant-people", args=[world.tenant.pk])
        assert page not in staff.get(overview).content.decode()
        delete(world)
        assert page in staff.get(overview).content.decode()
        assert staff.post(page, {"reason": "T-1"}).status_code == 302
        assert read_config(world.tenant.pk).seq == 2
        (event,) = Event.objects.filter(kind="staff.acted", tenant_id=world.tenant.pk)
        assert (event.reason, event.after) == ("T-1", {"act": "tenant.restored", "seq": 2})
        assert staff.post(page, {"reason": "T-1"}).status_code == 409


@pytest.mark.django_db(transaction=True)
class TestRaces:
    @pytest.mark.parametrize("commits", [True, False])
    def test_of_two_restores_one_wins(self, world: factories.World, commits: bool) -> None:
        delete(world)
        run_behind(
            partial(restore, world), partial(restore, world), commits=commits, refusal=TenantNotDeleted
        )
        history = Revision.objects.filter(tenant_id=world.tenant.pk, action="restore")
        assert sorted(history.values_list("kind", flat=True)) == ["config", "rules"]

    @pytest.mark.parametrize("commits", [True, False])
    def test_an_fqdn_that_is_claimed_meanwhile(self, world: factories.World, commits: bool) -> None:
        configure(world.tenant.pk, fqdns=[NAME])
        delete(world)
        Fqdn.objects.filter(name=NAME).delete()
        run_behind(
            partial(configure, world.stranger_tenant.pk, fqdns=[NAME]),
            partial(restore, world),
            commits=commits,
            refusal=FqdnConflict,
        )
        winner = world.stranger_tenant.pk if commits else world.tenant.pk
        assert Fqdn.objects.get(name=NAME).tenant_id == winner

    @pytest.mark.parametrize("commits", [True, False])
    def test_the_job_that_removes_tombstones_comes_first(self, world: factories.World, commits: bool) -> None:
        delete(world)
        run_behind(remove_early, partial(restore, world), commits=commits, refusal=TenantNotFound)
        assert Tenant.objects.filter(pk=world.tenant.pk).exists() != commits

    def test_the_job_leaves_a_tenant_that_is_being_restored(self, world: factories.World) -> None:
        delete(world)
        with uncommitted(partial(restore, world)) as first:
            remove_early()
            first.finish(commit=True)
        remove_early()
        assert read_config(world.tenant.pk).seq == 2
        assert Membership.objects.filter(tenant=world.tenant).count() == 3


pytestmark = pytest.mark.django_db


def test_a_tombstone_lives_30_days(world: factories.World) -> None:
    tenant = world.tenant
    configure(tenant.pk, fqdns=["w.gateway.localhost"])
    PermissionGrant.objects.create(
        grantee=world.stranger, resource="tenant", resource_id=tenant.pk, permissions=["config:read"]
    )
    delete_tenant(tenant_id=tenant.pk, actor="owner@example.org")
    age(tenant, 29.99)
    remove_tombstones()
    assert Tenant.objects.filter(pk=tenant.pk).exists()
    assert Fqdn.objects.filter(tenant_id=tenant.pk).exists()
    assert Membership.objects.filter(tenant_id=tenant.pk).count() == 3
    age(tenant, 30)
    remove_tombstones()
    assert not Tenant.objects.filter(pk=tenant.pk).exists()
    assert not Fqdn.objects.filter(tenant_id=tenant.pk).exists()
    assert not PermissionGrant.objects.filter(resource_id=tenant.pk).exists()
    assert Revision.objects.filter(tenant_id=tenant.pk).count() == 5
    assert Tenant.objects.filter(pk=world.stranger_tenant.pk).exists()
    remove_tombstones()
