"""What Gateways poll: a tenant's markers and the feed. Contract: Cache metadata and markers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from accounts.tenants.lifecycle import delete_tenant
from rules.markers import NewMarker, create_marker, delete_marker, invalidate_targets, update_marker
from rules.models import Marker
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.conftest import ApiClient
from tests.racing import uncommitted
from tests.streams import body_of

if TYPE_CHECKING:
    from django.test.utils import CaptureQueriesContext

FEED = "/config/invalidation-markers"
RULES = {
    "rules": [
        {"id": "orders", "conditions": {"userName": "a"}, "ttlSeconds": 3600},
        {"id": "items", "conditions": {"userName": "b"}, "ttlSeconds": 3600},
        {"id": "written", "conditions": {"isDataChange": True}, "invalidateRules": ["orders", "items"]},
    ]
}


@pytest.fixture
def gateway(world: factories.World) -> ApiClient:
    for tenant in (world.tenant, world.stranger_tenant):
        write_ruleset(tenant_id=tenant.pk, document=RULES, actor="owner@example.org")
    return ApiClient(factories.pat_token(world.platform_admin, "cache-admin", tenants=["*"]))


def poll(client: ApiClient, since: str | None = None, address: str = FEED) -> dict[str, Any]:
    answer = client.get(address if since is None else f"{address}?since={since}")
    assert answer.status_code == 200, answer.content
    body: dict[str, Any] = body_of(answer)
    return body


def ids(body: dict[str, Any]) -> list[str]:
    names = [marker["markerId"] for marker in body["markers"]]
    assert names == [item["name"] for item in body["_links"]["items"]]
    return names


def make(tenant_id: UUID, marker_id: str, target: str = "orders") -> None:
    create_marker(tenant_id, NewMarker(marker_id, target), actor="x@example.org")


@pytest.mark.django_db
class TestTenant:
    def test_each_marker_is_there_in_full_with_its_link(
        self, gateway: ApiClient, world: factories.World
    ) -> None:
        address = f"/tenants/{world.tenant.pk}/invalidation-markers"
        make(world.tenant.pk, "m1")
        make(world.tenant.pk, "m2")
        body = poll(gateway, address=address)
        assert ids(body) == ["m2", "m1"]
        for marker, item in zip(body["markers"], body["_links"]["items"], strict=True):
            assert item["href"] == f"{address}/{marker['markerId']}"
            assert gateway.get(item["href"]).json() == marker
        assert [marker["superseded"] for marker in body["markers"]] == [False, True]
        assert body["_links"]["self"] == {"href": address}
        assert body["_links"]["parent"] == {"href": f"/config/tenants/{world.tenant.pk}"}

    def test_long_statements_are_cut_in_lists_alone(self, gateway: ApiClient, world: factories.World) -> None:
        statement = "DELETE FROM " + "é" * 1_100
        fired = gateway.post(
            f"/tenants/{world.tenant.pk}/rules/written/invalidations", {"statement": statement}
        )
        make(world.tenant.pk, "by-hand")
        address = f"/tenants/{world.tenant.pk}/invalidation-markers"
        listed = poll(gateway, address=address)["markers"], poll(gateway)["markers"], fired.json()["markers"]
        for markers in listed:
            sources = [marker["invalidatedBy"] for marker in markers if marker["markerId"] != "by-hand"]
            assert [source["statement"] for source in sources] == [statement[:1000]] * 2
            assert sources[0]["triggeredBy"] == "Cross-rule invalidation"
        single = gateway.get(f"{address}/orders.0-InvalidationMarker").json()
        assert single["invalidatedBy"]["statement"] == statement

    def test_pages_only_where_a_limit_is_sent(self, gateway: ApiClient, world: factories.World) -> None:
        names = [f"m{number}" for number in range(5)]
        for name in names:
            make(world.tenant.pk, name)
        for list_ in (f"/tenants/{world.tenant.pk}/invalidation-markers", FEED):
            whole = poll(gateway, address=list_)
            assert ids(whole) == names[::-1]
            assert "next" not in whole["_links"]
            address, pages = f"{list_}?limit=2", []
            while address:
                body = poll(gateway, address=address)
                pages.append(ids(body))
                assert body["markers"] == [
                    marker for marker in whole["markers"] if marker["markerId"] in pages[-1]
                ]
                address = body["_links"].get("next", {}).get("href")
            assert pages == [["m4", "m3"], ["m2", "m1"], ["m0"]]
            tags = {gateway.get(f"{list_}{query}")["ETag"] for query in ("", "?limit=2", "?limit=3")}
            assert len(tags) == 3

    @pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=2&cursor=x", "limit=2&cursor=WzFd"])
    def test_a_bad_page_is_a_400(self, gateway: ApiClient, world: factories.World, query: str) -> None:
        for list_ in (f"/tenants/{world.tenant.pk}/invalidation-markers", FEED):
            assert gateway.get(f"{list_}?{query}").status_code == 400

    def test_since_returns_changed_markers(self, gateway: ApiClient, world: factories.World) -> None:
        address = f"/tenants/{world.tenant.pk}/invalidation-markers"
        make(world.tenant.pk, "m1")
        first = poll(gateway, address=address)
        make(world.tenant.pk, "m2", "items")
        second = poll(gateway, first["generatedAt"], address)
        assert ids(second) == ["m2"]
        update_marker(world.tenant.pk, "m1", {"metadata": {"reason": "again"}})
        third = poll(gateway, second["generatedAt"], address)
        assert ids(third) == ["m1"]
        assert ids(poll(gateway, third["generatedAt"], address)) == []

    def test_a_304_until_a_marker_changes_or_expires(
        self, gateway: ApiClient, world: factories.World
    ) -> None:
        address = f"/tenants/{world.tenant.pk}/invalidation-markers"
        make(world.tenant.pk, "m1")

        def is_unchanged(etag: str) -> bool:
            return gateway.get(address, **{"If-None-Match": etag}).status_code == 304

        changes: list[Callable[[], object]] = [
            partial(make, world.tenant.pk, "m2"),
            partial(update_marker, world.tenant.pk, "m1", {"metadata": {"reason": "again"}}),
            lambda: Marker.objects.filter(marker_id="m1").update(expires_at=now() - dt.timedelta(seconds=1)),
            partial(delete_marker, world.tenant.pk, "m1"),
        ]
        for change in changes:
            held = gateway.get(address)["ETag"]
            assert is_unchanged(held)
            change()
            assert not is_unchanged(held)


@pytest.mark.django_db
class TestFeed:
    def test_it_starts_with_the_markers_that_count(self, gateway: ApiClient, world: factories.World) -> None:
        make(world.tenant.pk, "expired")
        Marker.objects.update(expires_at=now() - dt.timedelta(seconds=1))
        make(world.tenant.pk, "deleted")
        delete_marker(world.tenant.pk, "deleted")
        make(world.tenant.pk, "m1")
        make(world.stranger_tenant.pk, "m2")
        body = poll(gateway)
        assert ids(body) == ["m2", "m1"]
        assert [marker["tenantId"] for marker in body["markers"]] == [
            str(world.stranger_tenant.pk),
            str(world.tenant.pk),
        ]
        single = gateway.get(body["_links"]["items"][1]["href"]).json()
        assert body["markers"][1] == {"tenantId": str(world.tenant.pk), **single, "deleted": False}

    def test_since_returns_new_changed_and_deleted_markers(
        self, gateway: ApiClient, world: factories.World
    ) -> None:
        make(world.tenant.pk, "m1")
        since = poll(gateway)["generatedAt"]
        changes: list[Callable[[], object]] = [
            partial(
                invalidate_targets, world.stranger_tenant.pk, rule_id="written", statement="DELETE", actor="x"
            ),
            partial(update_marker, world.tenant.pk, "m1", {"metadata": {"reason": "again"}}),
            partial(delete_marker, world.tenant.pk, "m1"),
        ]
        seen = []
        for change in changes:
            change()
            body = poll(gateway, since)
            seen.append([(marker["markerId"], marker["deleted"]) for marker in body["markers"]])
            assert body["generatedAt"] > since
            since = body["generatedAt"]
        assert seen == [
            [("items.0-InvalidationMarker", False), ("orders.0-InvalidationMarker", False)],
            [("m1", False)],
            [("m1", True)],
        ]
        again = poll(gateway, since)
        assert (again["markers"], again["generatedAt"]) == ([], since)

    def test_since_returns_a_marker_that_is_superseded_or_no_longer(
        self, gateway: ApiClient, world: factories.World
    ) -> None:
        tenant = world.tenant.pk
        for marker_id in ("m0", "m1"):
            make(tenant, marker_id)
        make(tenant, "other", "items")
        since = poll(gateway)["generatedAt"]
        make(tenant, "m2")
        states = {marker["markerId"]: marker["superseded"] for marker in poll(gateway, since)["markers"]}
        assert states == {"m1": True, "m2": False}
        since = poll(gateway)["generatedAt"]
        invalidate_targets(tenant, rule_id="written", statement="INSERT", actor="x@example.org")
        fired = ("orders.0-InvalidationMarker", "items.0-InvalidationMarker")
        assert set(ids(poll(gateway, since))) == {"m2", "other", *fired}
        since = poll(gateway)["generatedAt"]
        delete_marker(tenant, fired[0])
        body = poll(gateway, since)
        assert {m["markerId"]: (m["superseded"], m["deleted"]) for m in body["markers"]} == {
            fired[0]: (False, True),
            "m2": (False, False),
        }
        since = body["generatedAt"]
        # It was superseded, so the cutoff stays.
        delete_marker(tenant, "m1")
        assert ids(poll(gateway, since)) == ["m1"]

    def test_a_304_while_nothing_changes(self, gateway: ApiClient, world: factories.World) -> None:
        make(world.tenant.pk, "m1")
        since = poll(gateway)["generatedAt"]
        held = gateway.get(f"{FEED}?since={since}")["ETag"]
        again = gateway.get(f"{FEED}?since={since}", **{"If-None-Match": held})
        assert (again.status_code, again.content) == (304, b"")
        make(world.tenant.pk, "m2")
        assert gateway.get(f"{FEED}?since={since}", **{"If-None-Match": held}).status_code == 200

    def test_a_pat_sees_its_own_tenants(self, gateway: ApiClient, world: factories.World) -> None:
        make(world.tenant.pk, "m1")
        make(world.stranger_tenant.pk, "m2")
        own = factories.pat_token(world.owner, "cache-admin", tenants=[str(world.tenant.pk)])
        assert ids(poll(ApiClient(own))) == ["m1"]
        assert ids(poll(gateway)) == ["m2", "m1"]

    def test_a_deleted_tenant_has_no_markers(self, gateway: ApiClient, world: factories.World) -> None:
        make(world.tenant.pk, "m1")
        make(world.stranger_tenant.pk, "m2")
        delete_tenant(tenant_id=world.tenant.pk, actor="owner@example.org")
        assert ids(poll(gateway)) == ["m2"]

    def test_its_queries_do_not_grow_with_the_markers(
        self,
        gateway: ApiClient,
        world: factories.World,
        django_assert_num_queries: Callable[[int], CaptureQueriesContext],
    ) -> None:
        for number in range(5):
            make(world.tenant.pk, f"m{number}")
        gateway.get(FEED)
        with django_assert_num_queries(5):  # the caller, the open transactions, newest, state, rows
            assert len(poll(gateway)["markers"]) == 5

    @pytest.mark.parametrize("query", ["since=yesterday", "since=2026-11-21T00:00:00", "status=active"])
    def test_a_bad_parameter_is_a_400(self, gateway: ApiClient, query: str) -> None:
        assert gateway.get(f"{FEED}?{query}").status_code == 400


@pytest.mark.django_db(transaction=True)
def test_a_marker_that_commits_late_is_not_missed(gateway: ApiClient, world: factories.World) -> None:
    before = poll(gateway)["generatedAt"]
    with uncommitted(partial(make, world.tenant.pk, "late")) as late:
        make(world.stranger_tenant.pk, "early")
        between = poll(gateway, before)
        assert ids(between) == ["early"]
        assert between["generatedAt"] == before
        late.finish(commit=True)
    assert sorted(ids(poll(gateway, between["generatedAt"]))) == ["early", "late"]
