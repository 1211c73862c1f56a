"""``POST /oauth/token`` and bearer authentication. Contract: Authentication."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import jwt
import pytest

from accounts.access.credentials import create_pat, create_refresh_token
from accounts.access.scopes import Scope
from accounts.models import PersonalAccessToken, RefreshToken
from tenantadmin.lib.core.timestamps import now
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from tests import factories

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


def test_a_wildcard_pat_ends_when_its_owner_is_no_longer_a_platform_admin(
    anonymous: ApiClient, world: factories.World
) -> None:
    _, text = create_pat(
        owner=world.platform_admin, name="gateway", scopes=[Scope.CONFIG_READ], tenants=["*"]
    )
    body = {"grant_type": "pat_exchange", "pat": text}
    assert anonymous.post("/oauth/token", body).status_code == 200
    type(world.owner).objects.filter(pk=world.platform_admin.pk).update(role="user")
    assert anonymous.post("/oauth/token", body).status_code == 401
