"""OAuth tokens: exchange, end, describe; and bearer authentication. Contract: Authentication."""

from __future__ import annotations

import datetime as dt
from typing import Any

import jwt
import pytest
from django.test import Client

from accounts.access.credentials import (
    InvalidGrant,
    create_pat,
    create_refresh_token,
    exchange_pat,
    mint_for_sign_in,
    revoke,
)
from accounts.access.scopes import Scope
from accounts.models import Membership, PersonalAccessToken, RefreshToken
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.accounts.support import signed_in
from tests.conftest import ApiClient, clear_principal_cache

pytestmark = pytest.mark.django_db
TOO_MANY = "The request has more than 1000 query parameters or form fields."


def test_a_pat_becomes_an_access_token_that_verifies_offline_by_the_published_key(
    anonymous: ApiClient, world: factories.World
) -> None:
    tenant_id = str(world.tenant.pk)
    pat, text = create_pat(
        owner=world.owner, name="ci", scopes=[Scope.CONFIG_READ, Scope.CACHE_ADMIN], tenants=[tenant_id]
    )

    answer = anonymous.post("/oauth/token", {"grant_type": "pat_exchange", "pat": text})

    assert answer.status_code == 200
    body = answer.json()
    assert {**body, "access_token": "…"} == {
        "access_token": "…",
        "token_type": "Bearer",
        "expires_in": 3600,
        "scope": "cache-admin config:read",
    }
    assert answer["Cache-Control"] == "no-store"
    keys = jwt.PyJWKSet.from_dict(anonymous.get("/.well-known/jwks.json").json())
    kid = jwt.get_unverified_header(body["access_token"])["kid"]
    claims = jwt.decode(
        body["access_token"],
        keys[kid].key,
        algorithms=["ES256"],
        audience="tenant-admin",
        issuer="http://testserver",
    )
    assert claims["exp"] - claims["iat"] == 3600
    del claims["exp"], claims["iat"], claims["jti"]
    assert claims == {
        "iss": "http://testserver",
        "aud": "tenant-admin",
        "sub": "owner@example.org",
        "epoch": str(world.owner.epoch),
        "typ": "access",
        "role": "user",
        "scope": "cache-admin config:read",
        "tenants": [tenant_id],
        "accounts": [],
        "pat": pat.pk,
    }


def test_only_the_digest_of_a_credential_is_stored(world: factories.World) -> None:
    pat, text = create_pat(owner=world.owner, name="ci", scopes=[Scope.CONFIG_READ])
    stored = PersonalAccessToken.objects.values().get(pk=pat.pk)
    assert text not in str(stored)
    assert text.startswith(stored["prefix"])
    assert len(stored["prefix"]) == len("tas_pat_") + 8


def test_a_credential_has_256_random_bits_after_its_prefix(world: factories.World) -> None:
    _, pat = create_pat(owner=world.owner, name="ci", scopes=[Scope.CONFIG_READ])
    _, refresh = create_refresh_token(user=world.owner)
    # 43 characters of 6 bits each.
    assert (len(pat), len(refresh)) == (len("tas_pat_") + 43, len("tas_refresh_") + 43)


def test_of_a_long_address_the_first_64_characters_are_stored(world: factories.World) -> None:
    row, _ = create_refresh_token(user=world.owner, address="fe80::1%" + "x" * 99)
    assert RefreshToken.objects.get(pk=row.pk).address == "fe80::1%" + "x" * 56


def test_a_refresh_token_stays_valid_after_use(anonymous: ApiClient, world: factories.World) -> None:
    _, text = create_refresh_token(user=world.member)
    assert text.startswith("tas_refresh_")
    for _ in range(2):
        answer = anonymous.post("/oauth/token", {"grant_type": "refresh_token", "refresh_token": text})
        assert answer.status_code == 200
        assert answer.json()["scope"] == "config:read logs:query logs:read"
    assert RefreshToken.objects.get().last_used_at is not None


def test_the_form_body_of_oauth_clients_is_read_too(anonymous: ApiClient, world: factories.World) -> None:
    _, text = create_refresh_token(user=world.member)
    answer = anonymous.request(
        "POST",
        "/oauth/token",
        f"grant_type=refresh_token&refresh_token={text}".encode(),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert answer.status_code == 200


@pytest.mark.parametrize(("path", "field"), [("/oauth/token", "refresh_token"), ("/auth/logout", "token")])
def test_a_form_field_that_stands_twice_is_refused(
    anonymous: ApiClient, world: factories.World, path: str, field: str
) -> None:
    _, text = create_refresh_token(user=world.member)
    answer = anonymous.request(
        "POST",
        path,
        f"{field}=x&{field}={text}".encode(),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    body = answer.json()
    assert (answer.status_code, body["error"]) == (400, "invalid_request")
    assert body["error_description"] == f"The form field {field} is given more than once."
    assert RefreshToken.objects.get().revoked_at is None


@pytest.mark.parametrize("path", ["/oauth/token", "/auth/logout"])
@pytest.mark.parametrize("method", ["GET", "PUT"])
@pytest.mark.parametrize("bearer", [None, "nonsense"])
def test_a_wrong_method_is_a_405_whatever_the_bearer(path: str, method: str, bearer: str | None) -> None:
    answer = ApiClient(bearer).request(method, path)
    assert (answer.status_code, answer.json()["error"]) == (405, "method_not_allowed")


@pytest.mark.parametrize(
    ("body", "error", "description"),
    [
        ({}, "invalid_request", "'grant_type' is missing: send 'pat_exchange' or 'refresh_token'."),
        ([], "invalid_request", "The body is not an object with 'grant_type'."),
        (
            {"grant_type": "password"},
            "unsupported_grant_type",
            "'grant_type' is one of 'pat_exchange', 'refresh_token', 'authorization_code'.",
        ),
        ({"grant_type": "pat_exchange"}, "invalid_request", "'pat' is missing: send the token's text."),
        (
            {"grant_type": "pat_exchange", "pat": 7},
            "invalid_request",
            "'pat' is missing: send the token's text.",
        ),
        (
            {"grant_type": "pat_exchange", "client_id": "x"},
            "invalid_request",
            "'pat' is missing: send the token's text.",
        ),
        (
            {"grant_type": "refresh_token", "pat": "x"},
            "invalid_request",
            "'pat' belongs to the grant type 'pat_exchange'; 'refresh_token' takes 'refresh_token'.",
        ),
        (b"{", "invalid_request", "The body is not valid JSON"),
    ],
)
def test_a_malformed_token_request_is_a_400_under_its_oauth_name(
    anonymous: ApiClient, body: object, error: str, description: str
) -> None:
    answer = anonymous.post("/oauth/token", body)
    assert answer.status_code == 400
    assert answer.json()["error"] == error
    assert answer.json()["error_description"].startswith(description)


@pytest.mark.parametrize("path", ["/oauth/token", "/auth/logout"])
def test_too_many_form_fields_are_a_400_under_its_oauth_name(anonymous: ApiClient, path: str) -> None:
    form = "&".join(f"a{number}=1" for number in range(1001)).encode()
    answer = anonymous.request(
        "POST", path, form, headers={"Content-Type": "application/x-www-form-urlencoded"}
    )
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert answer.json()["error_description"] == TOO_MANY


@pytest.mark.parametrize("path", ["/oauth/token", "/auth/logout"])
def test_too_many_query_parameters_are_a_400_under_its_oauth_name(anonymous: ApiClient, path: str) -> None:
    answer = anonymous.post(f"{path}?{'&'.join(['a=1'] * 1001)}", {})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert answer.json()["error_description"] == TOO_MANY


def test_an_ended_credential_is_a_401_invalid_grant(anonymous: ApiClient, world: factories.World) -> None:
    _, unknown = "", "tas_pat_" + "x" * 43
    expired_pat, expired = create_pat(
        owner=world.owner, name="old", scopes=[Scope.CONFIG_READ], expires_at=now() - dt.timedelta(seconds=1)
    )
    revoked_pat, revoked = create_pat(owner=world.owner, name="gone", scopes=[Scope.CONFIG_READ])
    PersonalAccessToken.objects.filter(pk=revoked_pat.pk).update(revoked_at=now())
    _, of_inactive = create_pat(owner=world.stranger, name="off", scopes=[Scope.CONFIG_READ])
    type(world.stranger).objects.filter(pk=world.stranger.pk).update(is_active=False)
    for text in (unknown, expired, revoked, of_inactive):
        answer = anonymous.post("/oauth/token", {"grant_type": "pat_exchange", "pat": text})
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_grant"), text
    assert expired_pat.pk != revoked_pat.pk


def test_a_session_ends_with_its_access_tokens(anonymous: ApiClient, world: factories.World) -> None:
    session, text = create_refresh_token(user=world.member)
    client = ApiClient(mint_for_sign_in(session).access_token)
    another = signed_in(world.member)
    assert client.get("/users/member@example.org").status_code == 200
    for _ in range(2):
        answer = anonymous.post("/auth/logout", {"token": text, "token_type_hint": "refresh_token"})
        assert (answer.status_code, answer.json()) == (200, {})
    grant = {"grant_type": "refresh_token", "refresh_token": text}
    assert anonymous.post("/oauth/token", grant).status_code == 401
    assert client.get("/users/member@example.org").status_code == 401
    assert another.get("/users/member@example.org").status_code == 200


def test_an_unknown_token_is_as_good_as_ended(anonymous: ApiClient, db: None) -> None:
    for text in ("tas_refresh_unknown", "nonsense", "ä"):
        assert anonymous.post("/auth/logout", {"token": text}).status_code == 200


def test_a_text_that_is_not_unicode_is_unknown_too(db: None) -> None:
    revoke("tas_pat_\ud800")
    with pytest.raises(InvalidGrant):
        exchange_pat("tas_pat_\ud800")


def test_no_bearer_is_looked_at(world: factories.World) -> None:
    _, text = create_refresh_token(user=world.member)
    assert ApiClient("nonsense").post("/auth/logout", {"token": text}).status_code == 200
    assert signed_in(world.stranger).post("/auth/logout", {"token": text}).status_code == 200


def test_a_form_is_read_too(anonymous: ApiClient, world: factories.World) -> None:
    _, text = create_refresh_token(user=world.member)
    answer = anonymous.request(
        "POST",
        "/auth/logout",
        f"token={text}".encode(),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert answer.status_code == 200
    grant = {"grant_type": "refresh_token", "refresh_token": text}
    assert anonymous.post("/oauth/token", grant).status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"token": ""},
        {"token": 7},
        {"token": "x", "tokn": "y"},
        {"token": "x", "token_type_hint": None},
        b"{",
    ],
)
def test_a_malformed_request_is_a_400_under_its_oauth_name(anonymous: ApiClient, body: object) -> None:
    answer = anonymous.post("/auth/logout", body)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


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
    assert [ask(gateway, credential) for credential in (outsider, wildcard)] == [INACTIVE] * 2
    admin = ApiClient(wildcard)
    assert [ask(admin, credential)["active"] for credential in (token, outsider, wildcard)] == [True] * 3
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
