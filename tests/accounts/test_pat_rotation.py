"""A new secret for a personal access token. Contract: POST /users/{email}/tokens/{id}/rotate."""

from __future__ import annotations

import datetime as dt
from importlib import import_module
from typing import Any

import jwt
import pytest
from django.db import connection

from accounts.access.credentials import create_pat, end_pat
from accounts.access.rights import clear_principal_cache
from accounts.access.scopes import Scope
from accounts.models import Event, PersonalAccessToken
from tenantadmin.lib.core.timestamps import now, parse_timestamp
from tests import factories
from tests.conftest import ApiClient

pytestmark = pytest.mark.django_db


def exchange(text: str) -> Any:
    return ApiClient().post("/oauth/token", {"grant_type": "pat_exchange", "pat": text})


def make(world: factories.World, **more: Any) -> tuple[PersonalAccessToken, str]:
    scopes = [Scope.CONFIG_READ, Scope.CONFIG_WRITE]
    return create_pat(owner=world.owner, name="ci", scopes=scopes, tenants=[str(world.tenant.pk)], **more)


def rotate(client: ApiClient, pat: PersonalAccessToken, body: Any = None) -> Any:
    return client.post(f"/users/owner@example.org/tokens/{pat.pk}/rotate", body)


def works(token: str, world: factories.World) -> bool:
    clear_principal_cache()
    return ApiClient(token).get(f"/config/tenants/{world.tenant.pk}").status_code == 200


@pytest.fixture
def owner(world: factories.World) -> ApiClient:
    return ApiClient(factories.sign_in(world.owner))


def test_both_secrets_are_accepted_for_a_day(owner: ApiClient, world: factories.World) -> None:
    pat, old = make(world)
    before = exchange(old).json()["access_token"]
    answer = rotate(owner, pat)
    assert answer.status_code == 200
    made = answer.json()
    new = made["token"]
    assert new.startswith("tas_pat_")
    assert new != old
    assert (made["id"], made["name"], made["prefix"]) == (pat.pk, "ci", new[:16])
    assert made["expiresAt"] == owner.get("/users/me/tokens").json()["tokens"][0]["expiresAt"]
    grace = parse_timestamp(made["previousEndsAt"]) - now()
    assert dt.timedelta(hours=23, minutes=59) < grace <= dt.timedelta(days=1)
    for text in (old, new):
        assert works(exchange(text).json()["access_token"], world)
    assert works(before, world)
    event = Event.objects.get(kind="pat.rotated")
    assert event.after == {"pat": pat.pk, "name": "ci", "previousEndsAt": made["previousEndsAt"]}


def test_tokens_minted_from_the_old_secret_end_with_it(owner: ApiClient, world: factories.World) -> None:
    pat, old = make(world)
    before = exchange(old).json()["access_token"]
    new = rotate(owner, pat, {"graceSeconds": 60}).json()["token"]
    within = exchange(old).json()
    assert 50 <= within["expires_in"] <= 60
    claims = jwt.decode(within["access_token"], options={"verify_signature": False})
    assert claims["exp"] - claims["iat"] <= 60
    assert works(before, world)
    PersonalAccessToken.objects.update(previous_ends_at=now())
    assert exchange(old).status_code == 401
    assert not works(before, world)
    assert not works(within["access_token"], world)
    assert works(exchange(new).json()["access_token"], world)


def test_without_grace_the_old_secret_ends_at_once(owner: ApiClient, world: factories.World) -> None:
    pat, old = make(world)
    before = exchange(old).json()["access_token"]
    new = rotate(owner, pat, {"graceSeconds": 0}).json()["token"]
    assert (exchange(old).status_code, exchange(new).status_code) == (401, 200)
    assert not works(before, world)


def test_rotating_again_ends_the_older_secret(owner: ApiClient, world: factories.World) -> None:
    pat, first = make(world)
    of_first = exchange(first).json()["access_token"]
    second = rotate(owner, pat).json()["token"]
    of_second = exchange(second).json()["access_token"]
    third = rotate(owner, pat).json()["token"]
    assert [exchange(text).status_code for text in (first, second, third)] == [401, 200, 200]
    assert [works(token, world) for token in (of_first, of_second)] == [False, True]


@pytest.mark.parametrize("seconds", [-1, 604_801, None, "60", 1.5])
def test_a_grace_of_more_than_a_week_is_refused(
    owner: ApiClient, world: factories.World, seconds: Any
) -> None:
    pat, old = make(world)
    answer = rotate(owner, pat, {"graceSeconds": seconds})
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "/graceSeconds")
    assert exchange(old).status_code == 200


def test_the_grace_is_never_longer_than_the_token_lives(owner: ApiClient, world: factories.World) -> None:
    pat, _ = make(world, expires_at=now() + dt.timedelta(hours=1))
    made = rotate(owner, pat, {"graceSeconds": 604_800}).json()
    assert made["previousEndsAt"] == made["expiresAt"]


def test_an_ended_token_is_not_rotated(owner: ApiClient, world: factories.World) -> None:
    pat, _ = make(world)
    end_pat(pat, actor="x")
    expired, _ = make(world, expires_at=now())
    assert [rotate(owner, it).status_code for it in (pat, expired)] == [404, 404]


def test_a_pat_rotates_only_one_with_no_more_rights(world: factories.World) -> None:
    admin = world.platform_admin
    here, wide = [str(world.tenant.pk)], [Scope.CONFIG_READ, Scope.USERS_WRITE]
    narrow = ApiClient(factories.pat_token(admin, "users:write", "config:read", tenants=here))
    pat, _ = create_pat(owner=admin, name="x", scopes=wide, tenants=["*"])
    assert narrow.post(f"/users/me/tokens/{pat.pk}/rotate").status_code == 403
    own = PersonalAccessToken.objects.get(owner=admin, name="test")
    assert narrow.post(f"/users/me/tokens/{own.pk}/rotate").status_code == 200


def test_revoking_the_former_secret_keeps_the_new_one(owner: ApiClient, world: factories.World) -> None:
    pat, old = make(world)
    new = rotate(owner, pat).json()["token"]
    assert ApiClient().post("/auth/logout", {"token": old}).status_code == 200
    assert (exchange(old).status_code, exchange(new).status_code) == (401, 200)
    assert Event.objects.get(kind="pat.revoked").before == {"pat": pat.pk, "secret": 1}
    assert ApiClient().post("/auth/logout", {"token": new}).status_code == 200
    assert exchange(new).status_code == 401


def test_tokens_without_an_end_got_one(world: factories.World) -> None:
    endless, far, soon = (make(world)[0].pk for _ in range(3))
    tokens = PersonalAccessToken.objects
    with connection.cursor() as cursor:
        # As it was before the migration. This transaction made the rows; in an upgrade they are older.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE accounts_personalaccesstoken ALTER expires_at DROP NOT NULL")
        cursor.execute("UPDATE accounts_personalaccesstoken SET expires_at = NULL WHERE id = %s", [endless])
        tokens.filter(pk=far).update(expires_at=parse_timestamp("2999-01-01T00:00:00Z"))
        end = now() + dt.timedelta(days=1)
        tokens.filter(pk=soon).update(expires_at=end)
        cursor.execute(import_module("accounts.migrations.0024_pat_life")._END_ENDLESS)
    ends = [(tokens.get(pk=pk).expires_at - now()).days for pk in (endless, far)]
    assert [730 <= days <= 731 for days in ends] == [True, True]
    assert tokens.get(pk=soon).expires_at == end
