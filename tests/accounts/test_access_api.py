"""What a caller may do, and where, through the API: cases that are easily got wrong.

Contract: Authentication.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from accounts.access.credentials import create_refresh_token
from accounts.access.rights import authenticate_token
from accounts.access.scopes import MEMBERSHIP_SCOPES, PAT_ONLY, Scope
from accounts.access.tokens import mint_access_token
from accounts.models import Membership, PermissionGrant, PersonalAccessToken, User
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.conftest import ApiClient
from tests.streams import body_of

pytestmark = pytest.mark.django_db


def test_a_token_from_before_its_user_became_a_guest_reads_only(world: factories.World) -> None:
    config, account = f"/config/tenants/{world.tenant.pk}/config", f"/config/accounts/{world.account.pk}"
    ids: dict[str, Any] = {"tenants": [str(world.tenant.pk)], "accounts": [str(world.account.pk)]}
    clients = [
        ApiClient(factories.sign_in(world.owner)),
        ApiClient(factories.pat_token(world.owner, "config:read", "config:write", **ids)),
    ]
    User.objects.filter(pk=world.owner.pk).update(role="guest")
    for client in clients:
        assert [client.get(path).status_code for path in (config, account)] == [200, 200]
        assert client.put(config, {"tenantName": "Mine"}).status_code == 403
        assert client.put(account, {"name": "Mine", "owners": ["owner@example.org"]}).status_code == 403
        assert client.delete(f"/config/tenants/{world.tenant.pk}").status_code == 403
    world.tenant.refresh_from_db()
    world.account.refresh_from_db()
    assert (world.tenant.name, world.account.name) == ("Warehouse", "Acme")


def test_a_sign_in_token_brings_nothing_that_is_for_pats_alone(world: factories.World) -> None:
    session, _ = create_refresh_token(user=world.owner)
    token = mint_access_token(
        subject="owner@example.org",
        epoch=world.owner.epoch,
        session=session.pk,
        role="user",
        scopes=Scope,
        tenants=[str(world.tenant.pk)],
        accounts=[str(world.account.pk)],
    )
    principal = authenticate_token(token)
    held = principal.on_tenants.scopes_on(tenant_id=world.tenant.pk, account_id=world.account.pk)
    assert held == MEMBERSHIP_SCOPES["owner"] - PAT_ONLY


@pytest.mark.parametrize("end", [{"expires_at": now()}, {"revoked_at": now()}])
def test_a_token_ends_with_the_pat_that_it_was_minted_from(
    world: factories.World, end: dict[str, dt.datetime]
) -> None:
    path = f"/config/tenants/{world.tenant.pk}/config"
    client = ApiClient(factories.pat_token(world.owner, "config:read", tenants=[str(world.tenant.pk)]))
    pat = PersonalAccessToken.objects.filter(owner=world.owner)
    pat.update(expires_at=now() + dt.timedelta(hours=1))
    assert client.get(path).status_code == 200
    pat.update(**end)
    answer = client.get(path)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_token")
    assert answer.json()["message"] == "The personal access token behind this token has ended."


@pytest.mark.parametrize("permissions", [("config:read", "users:read"), ("users:read", "config:read")])
def test_grants_on_one_tenant_add_up(world: factories.World, permissions: tuple[str, str]) -> None:
    for permission in permissions:
        PermissionGrant.objects.create(
            grantee=world.stranger, resource="tenant", resource_id=world.tenant.pk, permissions=[permission]
        )
    client = ApiClient(factories.sign_in(world.stranger))
    assert client.get(f"/config/tenants/{world.tenant.pk}/config").status_code == 200
    assert client.get("/users/member@example.org").status_code == 200


def test_a_signed_in_platform_admin_reads_every_tenant_and_lists_its_own(world: factories.World) -> None:
    Membership.objects.create(user=world.platform_admin, tenant=world.tenant, role="member")
    client = ApiClient(factories.sign_in(world.platform_admin))
    wildcard = ApiClient(factories.pat_token(world.platform_admin, "config:read", accounts=["*"]))
    both = {str(world.tenant.pk), str(world.stranger_tenant.pk)}
    for reader, listed in ((client, {str(world.tenant.pk)}), (wildcard, both)):
        for path in ("/config/tenants", "/config/tenants/manifest"):
            assert {item["name"] for item in body_of(reader.get(path))["_links"]["items"]} == listed
        for tenant_id in both:
            assert reader.get(f"/config/tenants/{tenant_id}").status_code == 200
