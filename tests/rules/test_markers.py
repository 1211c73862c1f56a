"""Invalidation markers through the API. Contract: Invalidation marker, Cache metadata and markers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from accounts.tenants.errors import TenantNotFound
from accounts.tenants.lifecycle import delete_tenant
from rules.markers import read_marker, update_marker
from rules.models import Marker
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import now, parse_timestamp
from tests import factories
from tests.conftest import ApiClient
from tests.streams import body_of

if TYPE_CHECKING:
    from django.test.utils import CaptureQueriesContext

pytestmark = pytest.mark.django_db

RULES: list[dict[str, Any]] = [
    {"id": "orders", "conditions": {"userName": "a"}, "ttlSeconds": 3600},
    {"id": "items", "conditions": {"userName": "b"}},
    {"id": "written", "conditions": {"isDataChange": True}, "invalidateRules": ["orders", "items"]},
]


@pytest.fixture
def client(world: factories.World) -> ApiClient:
    write_ruleset(tenant_id=world.tenant.pk, document={"rules": RULES}, actor="owner@example.org")
    tenants = [str(world.tenant.pk)]
    return ApiClient(factories.pat_token(world.owner, "cache-admin", tenants=tenants))


@pytest.fixture
def address(world: factories.World) -> str:
    return f"/tenants/{world.tenant.pk}/invalidation-markers"


def make(client: ApiClient, address: str, marker_id: str, target: str = "orders") -> dict[str, Any]:
    answer = client.post(address, {"markerId": marker_id, "targetRuleId": target})
    assert answer.status_code == 201, answer.content
    body: dict[str, Any] = answer.json()
    return body


def expire(marker_id: str) -> None:
    Marker.objects.filter(marker_id=marker_id).update(expires_at=now() - dt.timedelta(seconds=1))


@pytest.fixture
def elsewhere(world: factories.World) -> tuple[ApiClient, str]:
    """A client for another tenant with the same rules, and the address of its markers."""
    tenant_id = world.stranger_tenant.pk
    write_ruleset(tenant_id=tenant_id, document={"rules": RULES}, actor="stranger@example.org")
    token = factories.pat_token(world.stranger, "cache-admin", tenants=[str(tenant_id)])
    return ApiClient(token), f"/tenants/{tenant_id}/invalidation-markers"


def fire(client: ApiClient, address: str) -> list[str]:
    """Report that the rule "written" fired; return the ids of the new markers."""
    fired = address.replace("invalidation-markers", "rules/written/invalidations")
    answer = client.post(fired, {"statement": "UPDATE orders SET x = 1"})
    assert answer.status_code == 201, answer.content
    return [marker["markerId"] for marker in answer.json()["markers"]]


def listed(client: ApiClient, address: str) -> list[str]:
    answer = client.get(address)
    assert answer.status_code == 200
    return [item["name"] for item in body_of(answer)["_links"]["items"]]


def test_a_marker_inherits_its_life_from_the_target_rule(client: ApiClient, address: str) -> None:
    answer = client.post(
        address,
        {"markerId": "m-1", "targetRuleId": "orders", "metadata": {"reason": "loaded again"}},
    )
    assert answer.status_code == 201, answer.content
    assert answer["Location"] == f"{address}/m-1"
    body = answer.json()
    begun = parse_timestamp(body["invalidatedAt"])
    assert parse_timestamp(body["expiresAt"]) - begun == dt.timedelta(seconds=3600)
    assert body == {
        "markerId": "m-1",
        "targetRuleId": "orders",
        "metadata": {"reason": "loaded again"},
        "invalidatedAt": body["invalidatedAt"],
        "expiresAt": body["expiresAt"],
        "ttlSeconds": 3600,
        "invalidatedBy": {"ruleId": "orders", "triggeredBy": "Manual"},
        "createdAt": body["invalidatedAt"],
        "createdBy": "owner@example.org",
        "superseded": False,
    }
    assert client.get(f"{address}/m-1").json() == body
    assert make(client, address, "m-2", "items")["ttlSeconds"] == 86400


def test_the_ttl_is_fixed_at_creation(client: ApiClient, address: str, world: factories.World) -> None:
    made = make(client, address, "m-1")
    changed = [{**RULES[0], "ttlSeconds": 7200}, *RULES[1:]]
    write_ruleset(tenant_id=world.tenant.pk, document={"rules": changed}, actor="owner@example.org")
    assert client.get(f"{address}/m-1").json() == made


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"markerId": "taken"}, "/markerId"),
        ({"markerId": "removed"}, "/markerId"),
        ({"markerId": "-x"}, "/markerId"),
        ({"markerId": "x" * 201}, "/markerId"),
        ({"markerId": "a/b"}, "/markerId"),
        ({"markerId": "line\n"}, "/markerId"),
        ({"markerId": 7}, "/markerId"),
        ({"markerId": None}, "/markerId"),
        ({"targetRuleId": "unknown"}, "/targetRuleId"),
        ({"ttlSeconds": 60}, "/ttlSeconds"),
        ({"metadata": {"cause": "x"}}, "/metadata/cause"),
        ({"metadata": {"reason": 7}}, "/metadata/reason"),
        ({"invalidatedBy": {"user": "x"}}, "/invalidatedBy/user"),
    ],
)
def test_an_invalid_body_is_a_400_that_names_the_place(
    client: ApiClient, address: str, change: dict[str, Any], path: str
) -> None:
    make(client, address, "taken")
    make(client, address, "removed")
    assert client.delete(f"{address}/removed").json() == {
        "success": True,
        "message": "The marker is removed.",
    }
    answer = client.post(address, {"markerId": "new", "targetRuleId": "orders", **change})
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed")
    assert [detail["path"] for detail in answer.json()["details"]] == [path]
    assert listed(client, address) == ["taken"]


def test_the_refusal_of_a_new_marker_says_what_is_wrong(client: ApiClient, address: str) -> None:
    make(client, address, "taken")
    answer = client.post(address, {"markerId": "taken", "targetRuleId": "unknown"})
    assert answer.json()["details"] == [
        {
            "path": "/targetRuleId",
            "code": "unknown-rule",
            "message": "The ruleset has no rule 'unknown'.",
        },
        {
            "path": "/markerId",
            "code": "duplicate-marker-id",
            "message": "The id 'taken' was used before. Choose another.",
        },
    ]


def test_markers_of_other_tenants_do_not_count(
    client: ApiClient, address: str, elsewhere: tuple[ApiClient, str]
) -> None:
    ids = ["orders.0-InvalidationMarker", "items.0-InvalidationMarker"]
    make(client, address, "a")
    assert fire(client, address) == ids
    make(*elsewhere, "a")
    assert fire(*elsewhere) == ids
    assert client.get(f"{address}/{ids[0]}").json()["superseded"] is False
    assert listed(client, address) == [*reversed(ids), "a"]
    make(*elsewhere, "b")
    assert client.get(f"{address}/b").status_code == 404


def test_only_the_named_marker_is_removed(client: ApiClient, address: str) -> None:
    for marker_id in ("a", "b", "c"):
        make(client, address, marker_id)
    assert client.delete(f"{address}/b").json()["success"] is True
    assert client.get(f"{address}/b").status_code == 404
    assert client.delete(f"{address}/b").json()["success"] is False
    assert listed(client, address) == ["c", "a"]


def test_the_list_filters_by_state_and_target(client: ApiClient, address: str) -> None:
    for marker_id, target in (("a", "orders"), ("b", "items"), ("c", "orders")):
        make(client, address, marker_id, target)
    expire("a")
    answer = body_of(client.get(address))
    assert answer["_links"]["self"] == {"href": address}
    assert answer["_links"]["items"][0] == {"name": "c", "href": f"{address}/c"}
    assert listed(client, address) == ["c", "b", "a"]
    assert listed(client, f"{address}?status=active") == ["c", "b"]
    assert listed(client, f"{address}?status=expired") == ["a"]
    assert listed(client, f"{address}?targetRuleId=orders") == ["c", "a"]
    assert listed(client, f"{address}?status=active&targetRuleId=orders") == ["c"]
    for bad in ("status=old", "status=", "target=orders"):
        assert client.get(f"{address}?{bad}").status_code == 400


def test_a_newer_marker_supersedes_and_its_removal_or_expiry_undoes_that(
    client: ApiClient, address: str
) -> None:
    def superseded() -> dict[str, bool]:
        return {name: client.get(f"{address}/{name}").json()["superseded"] for name in ("a", "b", "x")}

    make(client, address, "a")
    make(client, address, "b")
    make(client, address, "x", "items")
    assert superseded() == {"a": True, "b": False, "x": False}
    expire("b")
    assert superseded() == {"a": False, "b": False, "x": False}
    make(client, address, "c")
    assert superseded() == {"a": True, "b": True, "x": False}
    assert client.put(f"{address}/b", {}).json()["superseded"] is True
    assert client.delete(f"{address}/c").status_code == 200
    assert superseded() == {"a": False, "b": False, "x": False}


def test_at_equal_times_the_newer_marker_supersedes(client: ApiClient, address: str) -> None:
    for name in ("first", "second", "other"):
        make(client, address, name, "items" if name == "other" else "orders")
    Marker.objects.update(invalidated_at=now())
    said = {
        name: client.get(f"{address}/{name}").json()["superseded"] for name in ("first", "second", "other")
    }
    assert said == {"first": True, "second": False, "other": False}
    assert listed(client, address) == ["other", "second", "first"]


def test_a_marker_of_an_earlier_moment_does_not_supersede(client: ApiClient, address: str) -> None:
    made = make(client, address, "later")
    make(client, address, "earlier")
    before = parse_timestamp(made["invalidatedAt"]) - dt.timedelta(seconds=1)
    Marker.objects.filter(marker_id="earlier").update(invalidated_at=before)
    assert client.get(f"{address}/later").json()["superseded"] is False
    assert client.get(f"{address}/earlier").json()["superseded"] is True
    assert listed(client, address) == ["later", "earlier"]


def test_an_empty_object_in_a_put_changes_nothing(client: ApiClient, address: str) -> None:
    make(client, address, "a")
    filled = {"metadata": {"reason": "why"}, "invalidatedBy": {"statement": "DELETE FROM t"}}
    changed = client.put(f"{address}/a", filled).json()
    assert changed["metadata"] == {"reason": "why"}
    answer = client.put(f"{address}/a", {"metadata": {}, "invalidatedBy": {}})
    assert (answer.status_code, answer.json()) == (200, changed)
    assert client.get(f"{address}/a").json() == changed


def test_a_put_changes_only_named_fields(client: ApiClient, address: str) -> None:
    made = make(client, address, "a")
    answer = client.put(f"{address}/a", {**made, "metadata": {"reason": "why"}})
    assert answer.status_code == 200, answer.content
    assert answer.json() == {**made, "metadata": {"reason": "why"}}
    answer = client.put(f"{address}/a", {"invalidatedBy": {"statement": "DELETE FROM t"}})
    assert answer.json()["invalidatedBy"] == {
        "ruleId": "orders",
        "triggeredBy": "Manual",
        "statement": "DELETE FROM t",
    }
    assert answer.json()["metadata"] == {"reason": "why"}
    for change in ({"ttlSeconds": 1}, {"expiresAt": "2030-01-01T00:00:00.000Z"}, {"superseded": True}):
        refused = client.put(f"{address}/a", change)
        assert refused.status_code == 400
        name = next(iter(change))
        assert refused.json()["details"] == [
            {
                "path": f"/{name}",
                "code": "read-only",
                "message": f"'{name}' is derived. Leave it out or send it as read.",
            }
        ]
    assert client.put(f"{address}/a", {"ttl": 1}).status_code == 400
    assert client.put(f"{address}/b", {}).status_code == 404


def test_an_unknown_marker(client: ApiClient, address: str) -> None:
    for answer in (client.get(f"{address}/unknown"), client.put(f"{address}/unknown", {})):
        assert (answer.status_code, answer.json()["message"]) == (404, "There is no such marker.")
    answer = client.delete(f"{address}/unknown")
    assert (answer.status_code, answer.json()) == (
        200,
        {"success": False, "message": "There is no such marker."},
    )


def test_a_rule_that_fires_makes_one_marker_per_target(
    client: ApiClient, address: str, world: factories.World
) -> None:
    make(client, address, "orders.1-InvalidationMarker", "items")
    fired = f"/tenants/{world.tenant.pk}/rules/written/invalidations"
    answer = client.post(fired, {"statement": "UPDATE orders SET x = 1"})
    assert answer.status_code == 201, answer.content
    body = answer.json()
    ids = ["orders.0-InvalidationMarker", "items.0-InvalidationMarker"]
    assert [item["name"] for item in body["_links"]["items"]] == ids
    assert [marker["markerId"] for marker in body["markers"]] == ids
    assert [marker["ttlSeconds"] for marker in body["markers"]] == [3600, 86400]
    assert [marker["metadata"] for marker in body["markers"]] == [{}, {}]
    assert body["markers"][0]["invalidatedBy"] == {
        "ruleId": "written",
        "statement": "UPDATE orders SET x = 1",
        "triggeredBy": "Cross-rule invalidation",
    }
    assert client.get(body["_links"]["items"][0]["href"]).json() == body["markers"][0]
    again = client.post(fired, {"statement": "UPDATE orders SET x = 2"}).json()
    # 1 was taken by hand, and is passed over.
    assert [marker["markerId"] for marker in again["markers"]] == [
        "orders.2-InvalidationMarker",
        "items.1-InvalidationMarker",
    ]
    client.delete(f"{address}/orders.2-InvalidationMarker")
    third = client.post(fired, {"statement": "UPDATE orders SET x = 3"}).json()
    assert [marker["markerId"] for marker in third["markers"]] == [
        "orders.3-InvalidationMarker",
        "items.2-InvalidationMarker",
    ]


def test_invalidations_need_a_rule_that_invalidates(client: ApiClient, world: factories.World) -> None:
    rules = f"/tenants/{world.tenant.pk}/rules"
    assert client.post(f"{rules}/unknown/invalidations", {"statement": "x"}).status_code == 404
    assert client.post(f"{rules}/orders/invalidations", {"statement": "x"}).status_code == 400
    for body in ({}, {"statement": ""}, {"statement": 7}, {"statement": "x", "sql": "y"}):
        assert client.post(f"{rules}/written/invalidations", body).status_code == 400


def test_removing_a_rule_with_an_active_marker_needs_confirmation(
    client: ApiClient, address: str, world: factories.World
) -> None:
    make(client, address, "a", "items")
    owner = ApiClient(factories.sign_in(world.owner))
    rules = f"/config/tenants/{world.tenant.pk}/rules"
    without = {"rules": [RULES[0], {**RULES[2], "invalidateRules": ["orders"]}]}
    refused = owner.put(rules, without)
    assert refused.status_code == 400
    assert [finding["code"] for finding in refused.json()["errors"]] == ["rule-removed-active-marker"]
    assert owner.put(f"{rules}?confirmDeletes=orders", without).status_code == 400
    assert owner.put(f"{rules}?confirmDeletes=orders,items", without).status_code == 200
    # Back to before the rule was there, by restore: the same check.
    make(client, address, "b", "orders")
    refused = owner.post(f"{rules}/history/0/restore")
    assert [finding["code"] for finding in refused.json()["errors"]] == ["rule-removed-active-marker"]
    assert owner.post(f"{rules}/history/0/restore?confirmDeletes=orders").status_code == 200


def test_an_expired_marker_holds_no_rule(client: ApiClient, address: str, world: factories.World) -> None:
    make(client, address, "a", "items")
    expire("a")
    write_ruleset(tenant_id=world.tenant.pk, document={"rules": []}, actor="owner@example.org")


def test_after_deletion_of_the_tenant_everything_is_a_404(
    client: ApiClient, address: str, world: factories.World
) -> None:
    make(client, address, "a")
    delete_tenant(tenant_id=world.tenant.pk, actor="owner@example.org")
    fired = f"/tenants/{world.tenant.pk}/rules/written/invalidations"
    assert client.get(address).status_code == 404
    assert client.post(address, {"markerId": "b", "targetRuleId": "orders"}).status_code == 404
    assert client.get(f"{address}/a").status_code == 404
    assert client.put(f"{address}/a", {}).status_code == 404
    assert client.delete(f"{address}/a").status_code == 404
    assert client.post(fired, {"statement": "x"}).status_code == 404
    with pytest.raises(TenantNotFound):
        read_marker(world.tenant.pk, "a")
    with pytest.raises(TenantNotFound):
        update_marker(world.tenant.pk, "a", {})


def test_the_cost_does_not_grow_with_the_number_of_markers(
    client: ApiClient,
    address: str,
    django_assert_num_queries: Callable[[int], CaptureQueriesContext],
) -> None:
    for number in range(5):
        make(client, address, f"m{number}")
    with django_assert_num_queries(2):  # the caller, the marker
        client.get(f"{address}/m1")
    with django_assert_num_queries(6):  # the tenant, the open transactions, the newest, the state besides
        assert len(listed(client, address)) == 5


def test_the_cost_of_a_rule_that_fires_does_not_grow_with_how_often_it_fired(
    client: ApiClient,
    address: str,
    django_assert_num_queries: Callable[[int], CaptureQueriesContext],
) -> None:
    for _ in range(3):
        fire(client, address)
    # One of them changes the cutoffs, which the new markers supersede.
    with django_assert_num_queries(13):
        assert fire(client, address) == ["orders.3-InvalidationMarker", "items.3-InvalidationMarker"]
