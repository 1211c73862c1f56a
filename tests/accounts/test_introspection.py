"""What an access token says, asked by others. Contract: POST /oauth/introspect (RFC 7662)."""

from __future__ import annotations

from typing import Any

import jwt
import pytest
from django.test import Client

from accounts.access.rights import clear_principal_cache
from accounts.models import Membership, PersonalAccessToken, RefreshToken
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.conftest import ApiClient

pytestmark = pytest.mark.django_db
INACTIVE = {"active": False}


def ask(client: ApiClient, token: str) -> Any:
    answer = client.post("/oauth/introspect", {"token": token})
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    return answer.json()


@pytest.fixture
def gateway(world: factories.World) -> ApiClient:
    pat = factories.pat_token(world.tenant_admin, "config:read", tenants=[str(world.tenant.pk)])
    return ApiClient(pat)


def test_a_sign_in_token(gateway: ApiClient, world: factories.World) -> None:
    token = factories.sign_in(world.member)
    claims = jwt.decode(token, options={"verify_signature": False})
    assert ask(gateway, token) == {
        "active": True,
        "token_type": "Bearer",
        "sub": "member@example.org",
        "scope": "config:read logs:query logs:read",
        "role": "user",
        "tenants": [str(world.tenant.pk)],
        "accounts": [],
        "exp": claims["exp"],
        "jti": claims["jti"],
    }


def test_a_form_and_a_token_of_a_pat(world: factories.World) -> None:
    token = factories.pat_token(world.owner, "cache-admin", tenants=[str(world.tenant.pk)])
    answer = Client().generic(
        "POST",
        "/oauth/introspect",
        f"token={token}&token_type_hint=access_token",
        "application/x-www-form-urlencoded",
        headers={"Authorization": f"Bearer {factories.sign_in(world.owner)}"},
    )
    pat = PersonalAccessToken.objects.get(owner=world.owner)
    said = answer.json()
    assert (said["active"], said["pat"], said["scope"]) == (True, pat.pk, "cache-admin")


def test_what_libraries_of_oauth_send_besides_is_ignored(world: factories.World) -> None:
    more = {"client_id": "x", "scope": "config:write"}
    secret = factories.pat_secret(world.owner, "config:read", tenants=[str(world.tenant.pk)])
    token = ApiClient().post("/oauth/token", {"grant_type": "pat_exchange", "pat": secret, **more})
    assert token.status_code == 200
    caller = ApiClient(token.json()["access_token"])
    asked = caller.post("/oauth/introspect", {"token": token.json()["access_token"], **more})
    assert (asked.status_code, asked.json()["scope"]) == (200, "config:read")


def test_what_is_not_in_force(gateway: ApiClient, world: factories.World) -> None:
    token = factories.sign_in(world.member)
    RefreshToken.objects.update(revoked_at=now())
    for text in (token, f"{token[:-4]}AAAA", "tas_pat_x", "x"):
        assert ask(gateway, text) == INACTIVE


def test_the_caller_reads_all_tenants_of_the_token(gateway: ApiClient, world: factories.World) -> None:
    assert ask(gateway, factories.sign_in(world.stranger)) == INACTIVE
    both = factories.make_user("both@example.org")
    for tenant in (world.tenant, world.stranger_tenant):
        Membership.objects.create(user=both, tenant=tenant, role="member")
    token = factories.sign_in(both)
    assert ask(gateway, token) == INACTIVE
    outsider = factories.sign_in(factories.make_user("outsider@example.org"))
    wildcard = factories.pat_token(world.platform_admin, "config:read", tenants=["*"])
    assert [ask(gateway, it) for it in (outsider, wildcard)] == [INACTIVE] * 2
    admin = ApiClient(wildcard)
    assert [ask(admin, it)["active"] for it in (token, outsider, wildcard)] == [True] * 3
    assert ask(admin, wildcard)["tenants"] == ["*"]
    # A deleted tenant says nothing any more.
    world.stranger_tenant.deleted_at = now()
    world.stranger_tenant.save()
    clear_principal_cache()
    assert ask(gateway, token)["active"] is True


def test_a_token_of_an_account(world: factories.World) -> None:
    token = factories.pat_token(world.owner, "config:read", accounts=[str(world.account.pk)])
    assert ask(ApiClient(factories.sign_in(world.owner)), token)["accounts"] == [str(world.account.pk)]
    assert ask(ApiClient(factories.sign_in(world.member)), token) == INACTIVE


def test_who_may_ask(world: factories.World, anonymous: ApiClient) -> None:
    refused = anonymous.post("/oauth/introspect", {"token": "x"})
    assert (refused.status_code, refused.json()["error"]) == (401, "unauthorized")
    logs = ApiClient(factories.pat_token(world.member, "logs:read", tenants=[str(world.tenant.pk)]))
    assert logs.post("/oauth/introspect", {"token": "x"}).status_code == 403
    assert ApiClient(factories.sign_in(world.member)).post("/oauth/introspect", {}).status_code == 400


def test_the_number_of_queries_is_constant(world: factories.World, django_assert_num_queries: Any) -> None:
    Membership.objects.create(user=world.tenant_admin, tenant=world.stranger_tenant, role="member")
    gateway = ApiClient(factories.sign_in(world.tenant_admin))
    token = factories.sign_in(world.member)
    # The rights of both, the tenants, and which of them the caller may read.
    with django_assert_num_queries(4):
        assert ask(gateway, token)["active"] is True
    Membership.objects.create(user=world.member, tenant=world.stranger_tenant, role="member")
    token = factories.sign_in(world.member)
    with django_assert_num_queries(4):
        assert ask(gateway, token)["active"] is True
