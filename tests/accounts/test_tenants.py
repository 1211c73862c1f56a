"""Tenants: listed, created, found, deleted. Contract: Tenants and configuration."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from cachetools import TTLCache
from django.db import connection

from accounts.access import rights
from accounts.models import Fqdn, Membership, PermissionGrant, Revision, Tenant, TenantConfig
from accounts.tenants.stamps import newest_settled, settled_before
from rules.models import Ruleset
from tests import factories
from tests.conftest import ApiClient
from tests.streams import body_of

if TYPE_CHECKING:
    from accounts.models import User


pytestmark = pytest.mark.django_db


def client_of(user: User) -> ApiClient:
    return ApiClient(factories.sign_in(user))


def listed(client: ApiClient, more: str = "") -> list[str]:
    answer = client.get(f"/config/tenants{more}")
    assert answer.status_code == 200
    return [item["name"] for item in body_of(answer)["_links"]["items"]]


def test_the_list_has_the_exact_shape_that_the_gateway_depends_on(world: factories.World) -> None:
    tenant = str(world.tenant.pk)
    answer = client_of(world.member).get("/config/tenants")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/json"
    assert body_of(answer) == {
        "_links": {
            "self": {"href": "/config/tenants"},
            "parent": {"href": "/"},
            "items": [{"name": tenant, "href": f"/config/tenants/{tenant}"}],
        }
    }


def test_the_list_is_limited_to_the_callers_scope(world: factories.World) -> None:
    mine, other = str(world.tenant.pk), str(world.stranger_tenant.pk)
    assert listed(client_of(world.owner)) == [mine]
    assert listed(client_of(world.stranger)) == [other]
    assert listed(client_of(world.platform_admin)) == []
    named = factories.pat_token(world.platform_admin, "config:read", tenants=[other])
    assert listed(ApiClient(named)) == [other]
    wildcard = factories.pat_token(world.platform_admin, "config:read", tenants=["*"])
    assert sorted(listed(ApiClient(wildcard))) == sorted([mine, other])
    account = factories.pat_token(world.platform_admin, "config:read", accounts=[str(world.account.pk)])
    assert listed(ApiClient(account)) == [mine]


def test_a_tenant_links_to_its_documents(world: factories.World) -> None:
    address = f"/config/tenants/{world.tenant.pk}"
    answer = client_of(world.member).get(address)
    assert answer.status_code == 200
    assert answer.json() == {
        "_links": {
            "self": {"href": address},
            "parent": {"href": "/config/tenants"},
            "config": {"href": f"{address}/config"},
            "rules": {"href": f"{address}/rules"},
        },
        "tenantId": str(world.tenant.pk),
    }
    again = client_of(world.member).get(address, **{"If-None-Match": answer["ETag"]})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", answer["ETag"])


def test_creating_a_tenant_stores_both_documents_and_makes_the_caller_its_owner(
    world: factories.World,
) -> None:
    answer = client_of(world.owner).post(
        "/config/tenants",
        {
            "accountId": str(world.account.pk),
            "tenantName": "  Sales  ",
            "fqdns": ["Sales.gateway.localhost"],
            "labels": {"team": "sales"},
        },
    )
    assert answer.status_code == 201, answer.content
    body = answer.json()
    tenant_id = UUID(body["tenantId"])
    stamp = body["createdAt"]
    assert body == {
        "tenantId": str(tenant_id),
        "accountId": str(world.account.pk),
        "tenantName": "Sales",
        "fqdns": ["sales.gateway.localhost"],
        "defaults": {"cacheEnabled": True, "ttlSeconds": 86400},
        "logging": {"retentionDays": 400, "storeParameterValues": True},
        "labels": {"team": "sales"},
        "access": {"staffApproval": "notify"},
        "plan": "team",
        "createdAt": stamp,
        "modifiedAt": stamp,
        "seq": 0,
    }
    assert answer["Location"] == f"/config/tenants/{tenant_id}"
    assert TenantConfig.objects.get(pk=tenant_id).seq == 0
    ruleset = Ruleset.objects.get(pk=tenant_id)
    assert (ruleset.seq, ruleset.rules) == (0, [])
    history = Revision.objects.filter(tenant_id=tenant_id).order_by("kind")
    assert [(row.kind, row.seq, row.action, row.user) for row in history] == [
        ("config", 0, "create", "owner@example.org"),
        ("rules", 0, "create", "owner@example.org"),
    ]
    assert [row.document for row in history][1] == {"rules": []}
    membership = Membership.objects.get(tenant_id=tenant_id)
    assert (membership.user_id, membership.role) == (world.owner.pk, "owner")
    fqdn = Fqdn.objects.get(name="sales.gateway.localhost")
    assert (fqdn.tenant_id, fqdn.released_at) == (tenant_id, None)


@pytest.mark.parametrize("remembers", [False, True])
def test_a_tenant_just_created_is_there_at_once(
    world: factories.World, monkeypatch: pytest.MonkeyPatch, remembers: bool
) -> None:
    if remembers:  # as a process does for some seconds
        cache = TTLCache[str, Any](maxsize=10, ttl=3.0, timer=lambda: 100.0)
        monkeypatch.setattr(rights, "_principal_cache", cache)
    world.account.owners.add(world.stranger)
    client = client_of(world.stranger)
    before = str(world.stranger_tenant.pk)
    assert listed(client) == listed(client, "/manifest") == [before]
    made = client.post("/config/tenants", {"accountId": str(world.account.pk), "tenantName": "New"})
    assert listed(client) == listed(client, "/manifest") == [made.json()["tenantId"], before]
    assert client.get(made["Location"]).status_code == 200
    assert client.put(f"{made['Location']}/config", {"tenantName": "Newer"}).status_code == 200
    assert client.get(f"{made['Location']}/config").json()["tenantName"] == "Newer"


def test_a_user_without_any_membership_uses_its_first_tenant_at_once(world: factories.World) -> None:
    newcomer = factories.make_user("new@example.org")
    client = client_of(newcomer)
    world.account.owners.add(newcomer)
    made = client.post("/config/tenants", {"accountId": str(world.account.pk), "tenantName": "New"})
    assert client.get(f"{made['Location']}/config").status_code == 200
    assert client.put(f"{made['Location']}/config", {"tenantName": "Newer"}).status_code == 200
    assert listed(client) == [made.json()["tenantId"]]


def test_a_stranger_learns_of_no_tenant(world: factories.World) -> None:
    for tenant_id in (world.tenant.pk, "99999999-9999-4999-8999-999999999999"):
        refused = client_of(world.stranger).get(f"/config/tenants/{tenant_id}/config")
        assert (refused.status_code, refused.json()["message"]) == (
            403,
            "This needs 'config:read' on the tenant.",
        )


def test_a_token_without_the_tenant_from_a_pat_is_not_told_to_refresh(world: factories.World) -> None:
    token = factories.pat_token(world.owner, "config:read")
    refused = ApiClient(token).get(f"/config/tenants/{world.tenant.pk}/config")
    assert (refused.status_code, refused.json()["message"]) == (
        403,
        "This needs 'config:read' on the tenant.",
    )


def test_a_platform_admin_creates_a_tenant_for_others_and_is_no_member(world: factories.World) -> None:
    answer = client_of(world.platform_admin).post(
        "/config/tenants", {"accountId": str(world.account.pk), "tenantName": "Theirs"}
    )
    assert answer.status_code == 201
    assert not Membership.objects.filter(tenant_id=answer.json()["tenantId"]).exists()


def test_a_grant_on_the_account_creates_no_tenant_in_it(world: factories.World) -> None:
    PermissionGrant.objects.create(
        grantee=world.stranger,
        resource="account",
        resource_id=world.account.pk,
        permissions=["config:read", "config:write"],
    )
    body = {"accountId": str(world.account.pk), "tenantName": "New"}
    answer = client_of(world.stranger).post("/config/tenants", body)
    assert (answer.status_code, answer.json()["message"]) == (
        403,
        "Only an owner of the account or a platform admin may do this.",
    )
    assert not Tenant.objects.filter(name="New").exists()


@pytest.mark.parametrize(
    ("who", "accounts", "status"),
    [
        ("owner", "here", 201),
        ("platform_admin", "here", 201),
        ("platform_admin", "*", 201),
        ("platform_admin", "elsewhere", 403),
    ],
)
def test_a_token_creates_a_tenant_where_it_stands_for_an_owner_or_a_platform_admin(
    world: factories.World, who: str, accounts: str, status: int
) -> None:
    named = {"here": str(world.account.pk), "elsewhere": str(factories.make_account().pk)}.get(
        accounts, accounts
    )
    token = factories.pat_token(getattr(world, who), "config:write", accounts=[named])
    body = {"accountId": str(world.account.pk), "tenantName": "New"}
    assert ApiClient(token).post("/config/tenants", body).status_code == status
    # Platform admins make tenants for others.
    made = Membership.objects.filter(tenant__name="New").values_list("user__email", "role")
    assert list(made) == ([(world.owner.email, "owner")] if who == "owner" else [])


def test_an_unknown_account_is_a_404(world: factories.World) -> None:
    answer = client_of(world.platform_admin).post(
        "/config/tenants", {"accountId": "00000000-0000-4000-8000-000000000000", "tenantName": "New"}
    )
    assert (answer.status_code, answer.json()["error"]) == (404, "account_not_found")


@pytest.mark.parametrize(
    ("change", "path", "code"),
    [
        ({"accountId": None}, "/accountId", "null"),
        ({"accountId": "3F2B8C1E-5A7D-4E0F-9C6B-1D2E3F4A5B6C"}, "/accountId", "invalid"),
        ({"accountId": "3f2b8c1e5a7d4e0f9c6b1d2e3f4a5b6c"}, "/accountId", "invalid"),
        ({"tenantName": ""}, "/tenantName", "blank"),
        ({"tenantName": "   "}, "/tenantName", "invalid-name"),
        ({"tenantName": "x" * 101}, "/tenantName", "invalid-name"),
        ({"tenantName": "bell\a"}, "/tenantName", "invalid-name"),
        ({"tenantName": 7}, "/tenantName", "invalid"),
        ({"tenantNam": "x"}, "/tenantNam", "unknown-property"),
        ({"plan": "free"}, "/plan", "unknown-property"),
        ({"fqdns": "a.gateway.localhost"}, "/fqdns", "not-a-list"),
        ({"fqdns": ["*.gateway.localhost"]}, "/fqdns/0", "invalid-fqdn"),
        ({"fqdns": ["a.gateway.localhost."]}, "/fqdns/0", "invalid-fqdn"),
        ({"fqdns": ["127.0.0.1"]}, "/fqdns/0", "invalid-fqdn"),
        ({"fqdns": ["a.gateway.localhost", "A.gateway.localhost"]}, "/fqdns/1", "duplicate-fqdn"),
        ({"fqdns": ["a_b.gateway.localhost"]}, "/fqdns/0", "invalid-fqdn"),
        ({"fqdns": ["x" * 64 + ".gateway.localhost"]}, "/fqdns/0", "invalid-fqdn"),
        ({"fqdns": ["https://a.gateway.localhost"]}, "/fqdns/0", "invalid-fqdn"),
        ({"fqdns": ["a.example.net"]}, "/fqdns/0", "fqdn-outside-domains"),
        ({"fqdns": ["gateway.localhost"]}, "/fqdns/0", "fqdn-outside-domains"),
        ({"fqdns": ["аcme.gateway.localhost"]}, "/fqdns/0", "fqdn-not-ascii"),
        ({"defaults": {"ttlSeconds": 0}}, "/defaults/ttlSeconds", "min-value"),
        ({"defaults": {"ttlSeconds": "60"}}, "/defaults/ttlSeconds", "invalid"),
        ({"defaults": {"cacheEnabled": "true"}}, "/defaults/cacheEnabled", "invalid"),
        ({"logging": {"retention": 3}}, "/logging/retention", "unknown-property"),
        ({"labels": {"team": 7}}, "/labels/team", "invalid"),
        (
            {"warehouse": {"adapterType": "oracle", "serverHostname": "h"}},
            "/warehouse/adapterType",
            "invalid-choice",
        ),
        (
            {
                "warehouse": {
                    "adapterType": "snowflake",
                    "serverHostname": "h",
                    "credentialRef": "password=hunter2",
                }
            },
            "/warehouse/credentialRef",
            "looks-like-secret",
        ),
    ],
)
def test_a_body_that_does_not_hold_is_a_400_that_names_the_place(
    world: factories.World, change: dict[str, Any], path: str, code: str
) -> None:
    body = {"accountId": str(world.account.pk), "tenantName": "New", **change}
    answer = client_of(world.owner).post("/config/tenants", body)
    assert answer.status_code == 400, answer.content
    assert answer.json()["error"] == "validation_failed"
    assert [(detail["path"], detail["code"]) for detail in answer.json()["details"]] == [(path, code)]
    assert not Tenant.objects.filter(name="New").exists()


def test_a_name_stands_once_per_account_whatever_its_case(world: factories.World) -> None:
    body = {"accountId": str(world.account.pk), "tenantName": "wareHOUSE "}
    answer = client_of(world.owner).post("/config/tenants", body)
    assert (answer.status_code, answer.json()["error"]) == (409, "tenant_name_conflict")
    assert (
        client_of(world.stranger)
        .post("/config/tenants", {**body, "accountId": str(world.stranger_tenant.account_id)})
        .status_code
        == 201
    )


def test_the_plan_limits_tenants_and_fqdns(world: factories.World) -> None:
    account = factories.make_account("Free", plan="free", owners=[world.owner])
    client = client_of(world.owner)
    body = {"accountId": str(account.pk), "tenantName": "One"}
    names = [f"{name}.gateway.localhost" for name in "abc"]
    answer = client.post("/config/tenants", {**body, "fqdns": names})
    assert (answer.status_code, answer.json()["error"]) == (400, "plan_limit_exceeded")
    assert answer.json()["details"][0]["path"] == "/fqdns"
    assert client.post("/config/tenants", {**body, "fqdns": names[:2]}).status_code == 201
    answer = client.post("/config/tenants", {**body, "tenantName": "Two"})
    assert (answer.status_code, answer.json()["error"]) == (400, "plan_limit_exceeded")


def test_deletion_leaves_a_tombstone_and_the_history(world: factories.World) -> None:
    tenant_id = world.tenant.pk
    client = client_of(world.owner)
    stored = client.get(f"/config/tenants/{tenant_id}/config").json()
    client.put(f"/config/tenants/{tenant_id}/config", {**stored, "fqdns": ["mine.gateway.localhost"]})
    for user in (world.member, world.tenant_admin, world.stranger):
        assert client_of(user).delete(f"/config/tenants/{tenant_id}").status_code == 403
    answer = client.delete(f"/config/tenants/{tenant_id}")
    assert answer.status_code == 200
    assert answer.json() == {
        "success": True,
        "message": f"Tenant {tenant_id} is deleted.",
        "deletedFiles": 2,
    }
    assert listed(client) == []
    for more in ("", "/config", "/rules"):
        assert client.get(f"/config/tenants/{tenant_id}{more}").status_code == 404
    assert client.put(f"/config/tenants/{tenant_id}/config", stored).status_code == 404
    assert client.put(f"/config/tenants/{tenant_id}/rules", {"rules": []}).status_code == 404
    assert client.delete(f"/config/tenants/{tenant_id}").status_code == 404
    last = Revision.objects.filter(tenant_id=tenant_id, action="delete").order_by("kind")
    assert [(row.kind, row.seq, row.document) for row in last] == [("config", 2, None), ("rules", 1, None)]
    assert Fqdn.objects.get(name="mine.gateway.localhost").released_at is not None


def test_an_unknown_tenant_is_404_for_a_platform_admin_and_403_otherwise(world: factories.World) -> None:
    unknown = "/config/tenants/00000000-0000-4000-8000-000000000000"
    for more in ("", "/config", "/rules"):
        assert client_of(world.platform_admin).get(unknown + more).status_code == 404
        assert client_of(world.owner).get(unknown + more).status_code == 403


@pytest.mark.parametrize(
    "segment", ["3F2B8C1E-5A7D-4E0F-9C6B-1D2E3F4A5B6C", "x", "3f2b8c1e5a7d4e0f9c6b1d2e3f4a5b6c"]
)
def test_another_spelling_of_an_id_in_the_path_is_a_404(world: factories.World, segment: str) -> None:
    assert client_of(world.platform_admin).get(f"/config/tenants/{segment}").status_code == 404


def test_nothing_is_settled_that_happens_while_the_locks_are_read() -> None:
    def run_slowly(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        return execute(f"SELECT ({sql}) FROM pg_sleep(0.1)", *rest)

    with connection.execute_wrapper(run_slowly):
        settled = settled_before()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (ended,) = cursor.fetchone()
    assert settled <= ended - dt.timedelta(seconds=0.1)


EARLIER, LATER, LATEST = (dt.datetime(2026, 3, 1, 12, minute, tzinfo=dt.UTC) for minute in (10, 20, 30))
SECOND = dt.timedelta(seconds=1)
NEVER = "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("settled", "since", "expected"),
    [
        pytest.param(LATEST + SECOND, None, "2026-03-01T12:30:00.000Z", id="all settled"),
        pytest.param(LATEST + SECOND, EARLIER, "2026-03-01T12:30:00.000Z", id="all settled, since"),
        pytest.param(LATEST, None, "2026-03-01T12:20:00.000Z", id="before, not at, the horizon"),
        pytest.param(LATER + SECOND, EARLIER, "2026-03-01T12:20:00.000Z", id="newer than since"),
        pytest.param(LATER + SECOND, LATER + SECOND / 2, "2026-03-01T12:20:00.500Z", id="never before since"),
        pytest.param(LATER + SECOND, LATER + SECOND, "2026-03-01T12:20:00.000Z", id="since at the horizon"),
        pytest.param(LATER + SECOND, LATEST, "2026-03-01T12:20:00.000Z", id="since after the horizon"),
        pytest.param(EARLIER, None, NEVER, id="none settled"),
        pytest.param(EARLIER, EARLIER - SECOND, "2026-03-01T12:09:59.000Z", id="none settled, since"),
        pytest.param(EARLIER, LATEST, NEVER, id="none settled, since after the horizon"),
    ],
)
def test_a_safe_since_is_the_newest_settled_stamp(
    settled: dt.datetime, since: dt.datetime | None, expected: str
) -> None:
    account = factories.make_account()
    for name, stamp in (("Second", LATER), ("Third", LATEST), ("First", EARLIER)):
        tenant = factories.make_tenant(account, name)
        Tenant.objects.filter(pk=tenant.pk).update(modified_at=stamp)
    assert newest_settled(Tenant.objects.all(), "modified_at", settled=settled, since=since) == expected


def test_there_is_a_safe_since_without_rows() -> None:
    assert newest_settled(Tenant.objects.all(), "modified_at", settled=LATEST, since=LATER) == NEVER
