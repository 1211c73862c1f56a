"""Delegated permissions through the API. Contract: Authentication (PermissionGrant)."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest

from accounts.access.credentials import exchange_pat
from accounts.models import PermissionGrant, User
from accounts.signin.flow import Device, Identity, complete_sign_in
from tenantadmin.lib.core.timestamps import format_timestamp, now
from tests import factories
from tests.conftest import ApiClient, clear_principal_cache
from tests.streams import body_of

pytestmark = pytest.mark.django_db


def client_of(user: User) -> ApiClient:
    return ApiClient(factories.sign_in(user))


def grant_of(world: factories.World, **change: Any) -> dict[str, Any]:
    return {
        "grantee": "stranger@example.org",
        "resource": "tenant",
        "resourceId": str(world.tenant.pk),
        "permissions": ["config:read"],
        **change,
    }


def test_a_grant_adds_rights_until_it_is_revoked(world: factories.World) -> None:
    config = f"/config/tenants/{world.tenant.pk}/config"
    assert client_of(world.stranger).get(config).status_code == 403
    ends = format_timestamp(now() + dt.timedelta(days=1))
    answer = client_of(world.owner).post("/config/grants", grant_of(world, expiresAt=ends))
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert body == {
        **grant_of(world),
        "id": body["id"],
        "grantedBy": "owner@example.org",
        "createdAt": body["createdAt"],
        "expiresAt": ends,
    }
    grantee = client_of(world.stranger)
    assert grantee.get(config).status_code == 200
    assert grantee.put(config, {"tenantName": "x"}).status_code == 403
    address = f"/config/grants/{body['id']}"
    for user in (world.owner, world.stranger, world.platform_admin):
        items = body_of(client_of(user).get("/config/grants"))["_links"]["items"]
        assert items == [{"name": body["id"], "href": address, **body}]
        assert client_of(user).get(address).json() == body
    assert body_of(client_of(world.member).get("/config/grants"))["_links"]["items"] == []
    assert grantee.delete(address).status_code == 403
    assert client_of(world.member).get(address).status_code == 404
    assert client_of(world.member).delete(address).status_code == 404
    assert client_of(world.owner).delete(address).json()["success"] is True
    assert client_of(world.owner).delete(address).status_code == 404
    assert grantee.get(config).status_code == 403


def test_an_expired_grant_gives_nothing(world: factories.World) -> None:
    made = client_of(world.owner).post("/config/grants", grant_of(world)).json()
    PermissionGrant.objects.filter(pk=made["id"]).update(expires_at=now())
    assert client_of(world.stranger).get(f"/config/tenants/{world.tenant.pk}/config").status_code == 403
    assert body_of(client_of(world.owner).get("/config/grants"))["_links"]["items"] == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"grantee": "x"}, "/grantee"),
        ({"permissions": []}, "/permissions"),
        ({"permissions": ["config:read", "logs:read"]}, "/permissions/1"),
        ({"permissions": ["logs:query"]}, "/permissions/0"),
        ({"permissions": ["config:red"]}, "/permissions/0"),
        ({"resource": "user"}, "/resource"),
        ({"resource": {"tenant": "x"}}, "/resource"),
        ({"expiresAt": "2020-01-01T00:00:00Z"}, "/expiresAt"),
        ({"expiresAt": "2030-01-01"}, "/expiresAt"),
        ({"until": "x"}, "/until"),
    ],
)
def test_an_invalid_body_is_a_400_that_names_the_place(
    world: factories.World, change: dict[str, Any], path: str
) -> None:
    answer = client_of(world.owner).post("/config/grants", grant_of(world, **change))
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed")
    assert [detail["path"] for detail in answer.json()["details"]] == [path]


def test_an_owner_does_not_learn_who_is_a_user(world: factories.World) -> None:
    User.objects.filter(pk=world.member.pk).update(is_active=False)
    owner = client_of(world.owner)
    for email in ("stranger@example.org", "member@example.org", "unknown@example.org"):
        answer = owner.post("/config/grants", grant_of(world, grantee=email))
        assert (answer.status_code, answer.json()["grantee"]) == (201, email)
        events = owner.get("/config/events").json()["events"]
        assert [event["kind"] for event in events if event["subject"] == email] == ["grant.created"]
    # The grant waits for the first sign-in, which is a first one.
    unknown = User.objects.get(email="unknown@example.org")
    assert (unknown.last_login, unknown.has_usable_password()) == (None, False)
    complete_sign_in(Identity(email=unknown.email, email_verified=True), Device())
    granted = client_of(unknown).get(f"/config/tenants/{world.tenant.pk}/config")
    assert granted.status_code == 200
    assert unknown.memberships.get().role == "owner"


def test_a_platform_admin_is_told_that_there_is_no_such_user(world: factories.World) -> None:
    admin = client_of(world.platform_admin)
    answer = admin.post("/config/grants", grant_of(world, grantee="unknown@example.org"))
    assert (answer.status_code, answer.json()["details"][0]["code"]) == (400, "unknown-user")
    assert not User.objects.filter(email="unknown@example.org").exists()


def test_grants_follow_the_limits_of_invitations(world: factories.World, settings: Any) -> None:
    settings.RATE_LIMIT_NAMESPACE = f"test-{uuid.uuid4().hex}"
    settings.INVITATION_LIMIT = "2 per hour"
    owner = client_of(world.owner)
    statuses = [owner.post("/config/grants", grant_of(world)).status_code for _ in range(3)]
    assert statuses == [201, 201, 429]
    settings.SIGNIN_EMAIL_DOMAINS = ["example.com"]
    assert owner.post("/config/grants", grant_of(world)).status_code == 403


def test_the_resources_that_there_are_are_listed(world: factories.World) -> None:
    answer = client_of(world.owner).post("/config/grants", grant_of(world, resource={"tenant": "x"}))
    assert answer.json()["details"][0]["message"] == "Give one of: tenant, account."


def test_callers_grant_only_their_own_permissions(world: factories.World) -> None:
    everything = ["config:write", "analytics:users", "users:write"]
    attempts = [
        (world.owner, grant_of(world, permissions=everything), 201),
        (world.owner, grant_of(world, permissions=["tos:publish"]), 403),
        (world.tenant_admin, grant_of(world), 403),
        (world.member, grant_of(world), 403),
        (world.stranger, grant_of(world), 403),
        (world.platform_admin, grant_of(world, permissions=["config:write"]), 201),
        (world.platform_admin, grant_of(world, permissions=["logs:read"]), 400),
    ]
    for user, body, status in attempts:
        assert client_of(user).post("/config/grants", body).status_code == status, (user, body)


def test_a_grant_on_an_account_reaches_its_tenants(world: factories.World) -> None:
    on_account = grant_of(world, resource="account", resourceId=str(world.account.pk))
    assert client_of(world.owner).post("/config/grants", on_account).status_code == 201
    grantee = client_of(world.stranger)
    assert grantee.get(f"/config/accounts/{world.account.pk}").status_code == 200
    assert grantee.get(f"/config/tenants/{world.tenant.pk}/rules").status_code == 200
    items = body_of(grantee.get("/config/tenants"))["_links"]["items"]
    assert {item["name"] for item in items} == {str(world.tenant.pk), str(world.stranger_tenant.pk)}
    # The owner of the account holds no rights on a tenant that it is no member of.
    factories.make_tenant(world.account, "Second")
    for scope in ("analytics:read", "config:read"):
        refused = client_of(world.owner).post("/config/grants", {**on_account, "permissions": [scope]})
        assert (refused.status_code, refused.json()["message"]) == (
            403,
            f"You do not hold '{scope}' on every tenant of the account.",
        )


def test_a_grant_from_before_gives_no_raw_logs(world: factories.World) -> None:
    PermissionGrant.objects.create(
        grantee=world.stranger,
        resource="account",
        resource_id=world.account.pk,
        permissions=["config:read", "logs:read", "logs:query", "cache-admin"],
    )
    grantee = client_of(world.stranger)
    here = f"/tenants/{world.tenant.pk}"
    assert grantee.get(f"/config{here}/config").status_code == 200
    assert grantee.get(f"{here}/logs/2026").status_code == 403
    assert grantee.post(f"{here}/query", {"sql": "SELECT 1"}).status_code == 403


@pytest.mark.parametrize("resource", ["tenant", "account"])
def test_granted_permissions_cannot_be_granted_on(world: factories.World, resource: str) -> None:
    resource_id = {"tenant": world.tenant, "account": world.account}[resource].pk
    PermissionGrant.objects.create(
        grantee=world.owner,
        resource=resource,
        resource_id=resource_id,
        permissions=["tos:publish"],
        expires_at=now() + dt.timedelta(hours=1),
    )
    for grantee in ("stranger@example.org", "owner@example.org"):
        body = grant_of(
            world,
            grantee=grantee,
            resource=resource,
            resourceId=str(resource_id),
            permissions=["tos:publish"],
        )
        assert client_of(world.owner).post("/config/grants", body).status_code == 403


def test_an_unknown_resource_is_a_400_for_a_platform_admin(world: factories.World) -> None:
    unknown = {"resourceId": "00000000-0000-4000-8000-000000000000"}
    for resource in ("tenant", "account"):
        body = grant_of(world, resource=resource, **unknown)
        answer = client_of(world.platform_admin).post("/config/grants", body)
        assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "/resourceId")
        assert client_of(world.owner).post("/config/grants", body).status_code == 403


def test_an_operator_invalidates_without_writing_rules(world: factories.World) -> None:
    tenant = str(world.tenant.pk)
    member = client_of(world.member)

    def ask_for(*scopes: str) -> Any:
        return member.post("/users/me/tokens", {"name": "ops", "scopes": scopes, "tenants": [tenant]})

    assert ask_for("cache-admin").status_code == 403
    granted = client_of(world.owner).post(
        "/config/grants", grant_of(world, grantee=world.member.email, permissions=["cache-admin"])
    )
    assert granted.status_code == 201
    clear_principal_cache()
    assert ask_for("cache-admin", "config:write").status_code == 403
    made = ask_for("cache-admin", "config:read")
    assert made.status_code == 201, made.content
    operator = ApiClient(exchange_pat(made.json()["token"]).access_token)
    invalidations = f"/tenants/{tenant}/invalidations"
    assert operator.post(invalidations, {"tables": ["sales.*"]}).status_code == 201
    assert operator.put(f"/config/tenants/{tenant}/rules", {"rules": []}).status_code == 403
    # A token is for what pipelines do; a sign-in has no such scope.
    assert member.post(invalidations, {"tables": ["sales.*"]}).status_code == 403
    client_of(world.owner).delete(f"/config/grants/{granted.json()['id']}")
    clear_principal_cache()
    assert operator.post(invalidations, {"tables": ["sales.*"]}).status_code == 403
