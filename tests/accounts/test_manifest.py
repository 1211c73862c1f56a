"""The manifest that the Gateway polls. Contract: Tenant manifest."""

from __future__ import annotations

import gzip
import json
import random
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from accounts.models import Account, Tenant
from accounts.tenants.lifecycle import create_tenant, delete_tenant
from accounts.tenants.stamps import stamp_tenant
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import format_timestamp
from tests import factories
from tests.accounts.support import configure
from tests.conftest import ApiClient
from tests.racing import all_at_once, uncommitted
from tests.streams import body_of

if TYPE_CHECKING:
    from django.test.utils import CaptureQueriesContext

ACTOR = "owner@example.org"


@pytest.fixture
def gateway(world: factories.World) -> ApiClient:
    return ApiClient(factories.pat_token(world.platform_admin, "config:read", tenants=["*"]))


def poll(client: ApiClient, **query: str) -> dict[str, Any]:
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    answer = client.get(f"/config/tenants/manifest?{asked}".rstrip("?"))
    assert answer.status_code == 200, answer.content
    body: dict[str, Any] = body_of(answer)
    return body


def names(body: dict[str, Any]) -> list[str]:
    return [item["tenantName"] for item in body["_links"]["items"]]


def rename(tenant_id: UUID, name: str) -> None:
    configure(tenant_id, name=name)


@pytest.mark.django_db
class TestCompression:
    """A Gateway of many tenants reads the whole list when it starts."""

    @pytest.fixture
    def tenants(self, world: factories.World) -> int:
        Account.objects.update(plan="enterprise")
        for number in range(100):
            create_tenant(account_id=world.account.pk, document={"tenantName": f"t{number}"}, actor=ACTOR)
        return Tenant.objects.count()

    def test_a_long_list_is_compressed(self, gateway: ApiClient, tenants: int) -> None:
        path = "/config/tenants/manifest"
        plain = gateway.get(path)
        packed = gateway.get(path, **{"Accept-Encoding": "br, gzip"})
        assert "Accept-Encoding" in packed["Vary"]
        assert packed["Content-Encoding"] == "gzip"
        assert packed["ETag"] == f"W/{plain['ETag']}"
        whole, sent = plain.getvalue(), packed.getvalue()
        assert gzip.decompress(sent) == whole
        assert len(json.loads(whole)["_links"]["items"]) == tenants
        assert len(sent) < len(whole) / 3
        again = gateway.get(path, **{"Accept-Encoding": "gzip", "If-None-Match": packed["ETag"]})
        assert again.status_code == 304

    def test_a_short_list_and_one_for_other_callers_are_not(self, gateway: ApiClient, tenants: int) -> None:
        path = "/config/tenants/manifest"
        assert "Content-Encoding" not in gateway.get(path, **{"Accept-Encoding": "gzip;q=0"})
        short = gateway.get(f"{path}?name=t7", **{"Accept-Encoding": "gzip"})
        assert "Content-Encoding" not in short
        assert "Accept-Encoding" in short["Vary"]


@pytest.mark.django_db
class TestManifest:
    def test_it_lists_the_newest_change_first(self, gateway: ApiClient, world: factories.World) -> None:
        write_ruleset(tenant_id=world.tenant.pk, document={"rules": []}, actor=ACTOR)
        body = poll(gateway)
        tenants = {tenant.name: tenant for tenant in Tenant.objects.all()}
        assert body == {
            "_links": {
                "self": {"href": "/config/tenants/manifest"},
                "parent": {"href": "/config/tenants"},
                "items": [
                    {
                        "name": str(tenants[name].pk),
                        "href": f"/config/tenants/{tenants[name].pk}",
                        "modifiedAt": format_timestamp(tenants[name].modified_at),
                        "tenantName": name,
                        "deleted": False,
                    }
                    for name in ("Warehouse", "Other")
                ],
            },
            "generatedAt": format_timestamp(tenants["Warehouse"].modified_at),
        }

    def test_since_returns_only_later_changes(self, gateway: ApiClient, world: factories.World) -> None:
        first = poll(gateway)
        assert names(poll(gateway, since=first["generatedAt"])) == []
        rename(world.stranger_tenant.pk, "Renamed")
        second = poll(gateway, since=first["generatedAt"])
        assert names(second) == ["Renamed"]
        assert poll(gateway, since=second["generatedAt"])["generatedAt"] == second["generatedAt"]

    def test_every_kind_of_write_moves_modified_at(self, gateway: ApiClient, world: factories.World) -> None:
        writes: list[Callable[[], object]] = [
            partial(rename, world.tenant.pk, "New"),
            partial(write_ruleset, tenant_id=world.tenant.pk, document={"rules": []}, actor=ACTOR),
            partial(delete_tenant, tenant_id=world.tenant.pk, actor=ACTOR),
        ]
        since = poll(gateway)["generatedAt"]
        for write in writes:
            write()
            body = poll(gateway, since=since, includeDeleted="true")
            assert names(body) == ["New"]
            assert body["generatedAt"] > since
            since = body["generatedAt"]

    def test_tombstones_are_listed_on_request_alone(self, gateway: ApiClient, world: factories.World) -> None:
        delete_tenant(tenant_id=world.tenant.pk, actor=ACTOR)
        assert names(poll(gateway)) == ["Other"]
        assert names(poll(gateway, includeDeleted="false")) == ["Other"]
        item = poll(gateway, includeDeleted="true")["_links"]["items"][0]
        assert (item["tenantName"], item["deleted"]) == ("Warehouse", True)

    def test_a_deleted_tenant_gets_no_stamp(self, world: factories.World) -> None:
        assert stamp_tenant(world.stranger_tenant.pk) is not None
        delete_tenant(tenant_id=world.tenant.pk, actor=ACTOR)
        assert stamp_tenant(world.tenant.pk) is None

    def test_name_is_a_part_whatever_its_case(self, gateway: ApiClient, world: factories.World) -> None:
        rename(world.tenant.pk, "Straße 100%")
        assert names(poll(gateway, name="STRASSE")) == ["Straße 100%"]
        assert names(poll(gateway, name="0%25")) == ["Straße 100%"]
        assert names(poll(gateway, name="%25x")) == []
        assert sorted(names(poll(gateway, name=""))) == ["Other", "Straße 100%"]

    def test_callers_see_their_scope(self, world: factories.World) -> None:
        assert names(poll(ApiClient(factories.sign_in(world.member)))) == ["Warehouse"]
        assert names(poll(ApiClient(factories.sign_in(world.platform_admin)))) == []
        named = factories.pat_token(
            world.platform_admin, "config:read", tenants=[str(world.stranger_tenant.pk)]
        )
        assert names(poll(ApiClient(named))) == ["Other"]

    def test_a_304_while_nothing_changes(self, gateway: ApiClient, world: factories.World) -> None:
        address = "/config/tenants/manifest"
        held = gateway.get(address)["ETag"]
        again = gateway.get(address, **{"If-None-Match": held})
        assert (again.status_code, again.content) == (304, b"")
        rename(world.tenant.pk, "New")
        changed = gateway.get(address, **{"If-None-Match": held})
        assert changed.status_code == 200
        assert changed["ETag"] != held

    @pytest.mark.parametrize(
        ("query", "path"),
        [
            ("since=yesterday", "/since"),
            ("since=2026-11-21", "/since"),
            ("since=2026-11-21T00:00:00", "/since"),
            ("since=2026-13-01T00:00:00Z", "/since"),
            ("since=", "/since"),
            ("includeDeleted=yes", "/includeDeleted"),
            ("includeDeleted=", "/includeDeleted"),
            ("deleted=true", "/deleted"),
            ("name=a&name=b", "/name"),
        ],
    )
    def test_a_bad_parameter_is_a_400(self, gateway: ApiClient, query: str, path: str) -> None:
        answer = gateway.get(f"/config/tenants/manifest?{query}")
        assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")
        assert [detail["path"] for detail in answer.json()["details"]] == [path]

    def test_its_queries_do_not_grow_with_the_tenants(
        self,
        gateway: ApiClient,
        world: factories.World,
        django_assert_num_queries: Callable[[int], CaptureQueriesContext],
    ) -> None:
        for number in range(5):
            create_tenant(account_id=world.account.pk, document={"tenantName": f"T{number}"}, actor=ACTOR)
        with django_assert_num_queries(5):  # the caller, horizon, newest, state, rows
            assert len(names(poll(gateway))) == 7


@pytest.mark.django_db(transaction=True)
class TestLateCommits:
    def test_a_change_that_commits_late_is_not_missed(
        self, gateway: ApiClient, world: factories.World
    ) -> None:
        before = poll(gateway)["generatedAt"]
        with uncommitted(partial(rename, world.tenant.pk, "Late")) as late:
            rename(world.stranger_tenant.pk, "Early")
            between = poll(gateway, since=before)
            assert names(between) == ["Early"]
            # "Early" is newer than what may still appear: the next poll must start before that.
            assert between["generatedAt"] == before
            late.finish(commit=True)
        after = poll(gateway, since=between["generatedAt"])
        assert names(after) == ["Early", "Late"]
        assert after["generatedAt"] > before
        assert names(poll(gateway, since=after["generatedAt"])) == []

    def test_a_creation_and_a_deletion_that_commit_late_are_not_missed(
        self, gateway: ApiClient, world: factories.World
    ) -> None:
        since = poll(gateway)["generatedAt"]
        create = partial(
            create_tenant, account_id=world.account.pk, document={"tenantName": "New"}, actor=ACTOR
        )
        delete = partial(delete_tenant, tenant_id=world.tenant.pk, actor=ACTOR)
        with uncommitted(create) as creating, uncommitted(delete) as deleting:
            rename(world.stranger_tenant.pk, "Early")
            seen = poll(gateway, since=since, includeDeleted="true")
            creating.finish(commit=True)
            seen = poll(gateway, since=seen["generatedAt"], includeDeleted="true")
            assert sorted(names(seen)) == ["Early", "New"]
            deleting.finish(commit=True)
        seen = poll(gateway, since=seen["generatedAt"], includeDeleted="true")
        assert "Warehouse" in names(seen)

    def test_a_creation_alone_that_commits_late_is_not_missed(
        self, gateway: ApiClient, world: factories.World
    ) -> None:
        before = poll(gateway)["generatedAt"]
        create = partial(
            create_tenant, account_id=world.account.pk, document={"tenantName": "New"}, actor=ACTOR
        )
        with uncommitted(create) as creating:
            rename(world.stranger_tenant.pk, "Early")
            between = poll(gateway, since=before)
            assert names(between) == ["Early"]
            assert between["generatedAt"] == before
            creating.finish(commit=True)
        assert sorted(names(poll(gateway, since=before))) == ["Early", "New"]

    def test_a_rolled_back_change_does_not_delay_polls(
        self, gateway: ApiClient, world: factories.World
    ) -> None:
        with uncommitted(partial(rename, world.tenant.pk, "Never")) as never:
            rename(world.stranger_tenant.pk, "Early")
            never.finish(commit=False)
        body = poll(gateway)
        assert body["generatedAt"] == body["_links"]["items"][0]["modifiedAt"]
        assert names(body) == ["Early", "Warehouse"]

    def test_a_poller_sees_the_last_change_of_every_tenant_whatever_the_interleaving(
        self, gateway: ApiClient, world: factories.World
    ) -> None:
        tenants = [
            create_tenant(
                account_id=world.account.pk, document={"tenantName": f"T{number}"}, actor=ACTOR
            ).tenant_id
            for number in range(4)
        ]
        finished = threading.Event()
        seen: dict[str, str] = {}

        def follow() -> None:
            since = "1970-01-01T00:00:00.000Z"
            while True:
                last = finished.is_set()
                body = poll(gateway, since=since)
                for item in reversed(body["_links"]["items"]):
                    seen[item["name"]] = item["modifiedAt"]
                assert body["generatedAt"] >= since
                since = body["generatedAt"]
                if last:
                    return

        left = len(tenants)
        counting = threading.Lock()

        def write(tenant_id: UUID, number: int) -> None:
            nonlocal left
            for turn in range(12):
                rename(tenant_id, f"T{number} {turn} {random.randrange(10)}")  # noqa: S311
            with counting:
                left -= 1
                if not left:
                    finished.set()

        works: list[Callable[[], None]] = [follow]
        works += [partial(write, tenant_id, number) for number, tenant_id in enumerate(tenants)]
        all_at_once(works)
        stored = {str(tenant.pk): format_timestamp(tenant.modified_at) for tenant in Tenant.objects.all()}
        assert seen == stored
