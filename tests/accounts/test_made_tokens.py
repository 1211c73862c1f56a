"""Personal access tokens that a token or a session of staff makes. Docs: security.md."""

from __future__ import annotations

import datetime as dt
from functools import partial
from importlib import import_module
from typing import Any

import jwt
import pytest
from django.db import connection

from accounts.access.assurance import Assurance
from accounts.access.credentials import (
    create_pat,
    create_refresh_token,
    end_pat,
    end_refresh_token,
    exchange_pat,
    mint_for_sign_in,
)
from accounts.access.scopes import Scope
from accounts.models import Event, Membership, PersonalAccessToken, RefreshToken, User
from accounts.sessions import delete_ended_sessions
from accounts.signin.flow import Device, SignIn, open_session
from tenantadmin.lib.core.timestamps import format_timestamp, now, parse_timestamp
from tests import factories
from tests.accounts.support import at_once, signed_in
from tests.conftest import ApiClient, clear_principal_cache

pytestmark = pytest.mark.django_db
TOKENS = "/users/me/tokens"


def body(*scopes: str, **more: Any) -> dict[str, Any]:
    return {"name": "x", "scopes": list(scopes), **more}


class TestOfTokens:
    @pytest.fixture
    def parent(self, world: factories.World) -> PersonalAccessToken:
        """A token of an hour with which its owner makes tokens."""
        User.objects.filter(pk=world.owner.pk).update(role="admin")
        factories.pat_secret(world.owner, "users:write", "config:read", tenants=[str(world.tenant.pk)])
        pat = world.owner.personal_access_tokens.get()
        pat.expires_at = now() + dt.timedelta(hours=1)
        pat.save()
        return pat

    @pytest.fixture
    def client(self, parent: PersonalAccessToken, world: factories.World) -> ApiClient:
        made = signed_in(world.owner).post(f"{TOKENS}/{parent.pk}/rotate", {"graceSeconds": 0}).json()
        return ApiClient(exchange_pat(made["token"]).access_token)

    def make(self, client: ApiClient, world: factories.World, **more: Any) -> Any:
        return client.post(TOKENS, body("config:read", tenants=[str(world.tenant.pk)], **more))

    def test_it_ends_with_its_maker_at_the_latest(
        self, client: ApiClient, parent: PersonalAccessToken, world: factories.World
    ) -> None:
        made = self.make(client, world).json()
        assert made["expiresAt"] == format_timestamp(parent.expires_at)
        soon = format_timestamp(now() + dt.timedelta(minutes=5))
        assert self.make(client, world, expiresAt=soon).json()["expiresAt"] == soon
        late = format_timestamp(parent.expires_at + dt.timedelta(seconds=1))
        refused = self.make(client, world, expiresAt=late)
        assert [(detail["path"], detail["code"]) for detail in refused.json()["details"]] == [
            ("/expiresAt", "too-late")
        ]

    def test_it_is_revoked_with_it_and_so_on(
        self, client: ApiClient, parent: PersonalAccessToken, world: factories.World
    ) -> None:
        wide = body("config:read", "users:write", tenants=[str(world.tenant.pk)])
        child = client.post(TOKENS, wide).json()
        bearer = ApiClient(exchange_pat(child["token"]).access_token)
        grandchild = bearer.post(TOKENS, wide).json()
        token = exchange_pat(grandchild["token"]).access_token
        config = f"/config/tenants/{world.tenant.pk}/config"
        assert ApiClient(token).get(config).status_code == 200
        assert end_pat(parent, actor="owner@example.org")
        clear_principal_cache()
        assert ApiClient(token).get(config).status_code == 401
        assert not world.owner.personal_access_tokens.in_force().exists()
        ended = Event.objects.filter(kind="pat.revoked").values_list("before__pat", flat=True)
        assert set(ended) == {parent.pk, child["id"], grandchild["id"]}

    def test_it_ends_with_the_secret_that_made_it(
        self, client: ApiClient, parent: PersonalAccessToken, world: factories.World
    ) -> None:
        made = self.make(client, world).json()
        signed_in(world.owner).post(f"{TOKENS}/{parent.pk}/rotate", {"graceSeconds": 60})
        ends_at = PersonalAccessToken.objects.get(pk=made["id"]).expires_at
        assert ends_at <= now() + dt.timedelta(seconds=60)

    def test_what_the_former_secret_makes_ends_with_it(
        self, client: ApiClient, parent: PersonalAccessToken, world: factories.World
    ) -> None:
        signed_in(world.owner).post(f"{TOKENS}/{parent.pk}/rotate", {"graceSeconds": 60})
        former = PersonalAccessToken.objects.get(pk=parent.pk).previous_ends_at
        assert former is not None
        made = self.make(client, world).json()
        assert made["expiresAt"] == format_timestamp(former)
        late = format_timestamp(former + dt.timedelta(seconds=1))
        assert self.make(client, world, expiresAt=late).status_code == 400

    def test_rotating_it_makes_it_no_longer(
        self, client: ApiClient, parent: PersonalAccessToken, world: factories.World
    ) -> None:
        made = self.make(client, world).json()
        rotated = signed_in(world.owner).post(f"{TOKENS}/{made['id']}/rotate").json()
        assert rotated["expiresAt"] == format_timestamp(parent.expires_at)

    @pytest.mark.django_db(transaction=True)
    def test_a_revocation_at_the_same_time_ends_it(self) -> None:
        world = factories.make_world()
        User.objects.filter(pk=world.owner.pk).update(role="admin")
        for _ in range(5):
            secret = factories.pat_secret(
                world.owner, "users:write", "config:read", tenants=[str(world.tenant.pk)]
            )
            bearer = ApiClient(exchange_pat(secret).access_token)
            parent = world.owner.personal_access_tokens.in_force().get()
            calls: list[Any] = [partial(self.make, bearer, world), partial(end_pat, parent, actor="x")]
            answer, _ = at_once(calls)
            assert answer.status_code in {201, 401, 403}
            assert not world.owner.personal_access_tokens.in_force().exists()


class TestOfSessionsOfStaff:
    @pytest.fixture
    def session(self, world: factories.World) -> RefreshToken:
        open_session(
            world.platform_admin, Device(), assurance=Assurance(amr={}), ways={"provider": "x"}, is_staff=True
        )
        return RefreshToken.objects.get(user=world.platform_admin)

    @pytest.fixture
    def staff(self, session: RefreshToken) -> ApiClient:
        return ApiClient(mint_for_sign_in(session).access_token)

    def exchange(self, made: Any) -> ApiClient:
        return ApiClient(exchange_pat(made.json()["token"]).access_token)

    def test_it_is_marked_in_its_token_and_events(self, world: factories.World) -> None:
        opened = open_session(
            world.platform_admin, Device(), assurance=Assurance(amr={}), ways={}, is_staff=True
        )
        signed = SignIn.of_session(*opened)
        claims = jwt.decode(signed.access_token, options={"verify_signature": False})
        assert claims["staff"] is True
        after = Event.objects.filter(kind="sign-in.succeeded").values_list("after", flat=True).get()
        assert after == {"session": claims["sid"], "staff": True}
        fresh = ApiClient().post(
            "/oauth/token", {"grant_type": "refresh_token", "refresh_token": signed.refresh_token}
        )
        renewed = jwt.decode(fresh.json()["access_token"], options={"verify_signature": False})
        assert renewed["staff"] is True
        own = factories.sign_in(world.platform_admin)
        assert "staff" not in jwt.decode(own, options={"verify_signature": False})
        session = RefreshToken.objects.get(pk=claims["sid"])
        end_refresh_token(session, actor="x")
        ended = Event.objects.get(kind="session.ended")
        assert ended.before == {"session": session.pk, "staff": True}

    def test_its_tokens_name_one_tenant(self, world: factories.World, staff: ApiClient) -> None:
        both = [str(world.tenant.pk), str(world.stranger_tenant.pk)]
        for places in ({"tenants": ["*"]}, {"tenants": both}, {}, {"accounts": [str(world.account.pk)]}):
            assert staff.post(TOKENS, body("analytics:read", **places)).status_code == 403
        made = staff.post(TOKENS, body("analytics:read", "config:read", tenants=both[:1]))
        assert made.status_code == 201
        claims = jwt.decode(
            exchange_pat(made.json()["token"]).access_token, options={"verify_signature": False}
        )
        assert claims["staff"] is True
        assert self.exchange(made).get(f"/config/tenants/{world.tenant.pk}/config").status_code == 200

    @pytest.mark.parametrize("scope", ["analytics:users", "logs:read", "logs:query", "logs:notify"])
    def test_what_tells_of_users_is_for_members(
        self, world: factories.World, staff: ApiClient, scope: str
    ) -> None:
        wanted = body(scope, "config:read", tenants=[str(world.tenant.pk)])
        assert staff.post(TOKENS, wanted).status_code == 403
        membership = Membership.objects.create(
            user=world.platform_admin,
            tenant=world.tenant,
            role="admin",
            ends_at=now() + dt.timedelta(hours=1),
        )
        made = staff.post(TOKENS, wanted)
        assert made.status_code == 201
        method, path = {
            "analytics:users": ("GET", "users"),
            "logs:read": ("GET", "logs"),
            "logs:query": ("GET", "query/schema"),
            "logs:notify": ("POST", "logs/notifications"),
        }[scope]
        address = method, f"/tenants/{world.tenant.pk}/{path}"
        client = self.exchange(made)
        sent: Any = {"prefixes": []} if scope == "logs:notify" else None
        reason = {"X-Reason": "ticket%207"}
        assert client.request(*address, sent, headers=reason).status_code != 403
        membership.ends_at = now()
        membership.save()
        clear_principal_cache()
        assert client.request(*address, sent, headers=reason).status_code == 403
        # Its other scopes stay.
        assert client.get(f"/config/tenants/{world.tenant.pk}/config").status_code == 200

    def test_they_end_with_the_session(
        self, world: factories.World, staff: ApiClient, session: RefreshToken
    ) -> None:
        late = format_timestamp(now() + dt.timedelta(days=300))
        tenants = [str(world.tenant.pk)]
        made = staff.post(TOKENS, body("config:read", "users:write", tenants=tenants, expiresAt=late))
        assert made.json()["expiresAt"] == format_timestamp(session.expires_at)  # type: ignore[arg-type]  # sessions end
        client, config = self.exchange(made), f"/config/tenants/{world.tenant.pk}/config"
        child = self.exchange(client.post(TOKENS, body("config:read", tenants=tenants)))
        assert [caller.get(config).status_code for caller in (client, child)] == [200, 200]
        assert end_refresh_token(session, actor="x")
        clear_principal_cache()
        assert [caller.get(config).status_code for caller in (client, child)] == [401, 401]
        assert not PersonalAccessToken.objects.in_force().exists()

    def test_they_end_with_a_session_that_an_earlier_release_ends(
        self, world: factories.World, staff: ApiClient, session: RefreshToken
    ) -> None:
        """It knows no tokens of sessions, and runs beside this one while a deployment rolls."""
        made = staff.post(TOKENS, body("config:read", tenants=[str(world.tenant.pk)]))
        client, config = self.exchange(made), f"/config/tenants/{world.tenant.pk}/config"
        RefreshToken.objects.filter(pk=session.pk).update(revoked_at=now() - dt.timedelta(days=2))
        clear_principal_cache()
        assert client.get(config).status_code == 401
        sent = {"grant_type": "pat_exchange", "pat": made.json()["token"]}
        refused = ApiClient().post("/oauth/token", sent)
        assert (refused.status_code, refused.json()["error"]) == (401, "invalid_grant")
        assert delete_ended_sessions() > 0
        assert not PersonalAccessToken.objects.exists()

    def test_other_sessions_make_what_they_made(self, world: factories.World) -> None:
        session, _ = create_refresh_token(user=world.platform_admin)
        assert not session.is_staff
        made = signed_in(world.platform_admin).post(TOKENS, body("analytics:users", tenants=["*"]))
        assert made.status_code == 201


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
    assert [rotate(owner, credential).status_code for credential in (pat, expired)] == [404, 404]


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
