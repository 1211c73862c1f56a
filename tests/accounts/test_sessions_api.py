"""``/users/{email}/sessions``. Contract: Authentication, 3."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from cachetools import TTLCache
from django.db import connection, transaction

from accounts.access import rights
from accounts.access.credentials import create_pat, create_refresh_token, digest_of, mint_for_sign_in
from accounts.access.rights import authenticate_token
from accounts.access.scopes import Scope
from accounts.access.tokens import mint_access_token
from accounts.models import MagicLink, RefreshToken, User
from accounts.readers.rule import Author
from accounts.roles import replace_roles
from accounts.tasks import remove_ended_sessions
from accounts.users import delete_user
from tenantadmin.lib.core.errors import InvalidToken
from tenantadmin.lib.core.timestamps import format_timestamp, from_epoch_ms, now
from tests import factories
from tests.accounts.support import signed_in
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from django.test import Client


pytestmark = pytest.mark.django_db
OWN = "/users/member@example.org/sessions"


def session_of(user: User, **fields: Any) -> tuple[RefreshToken, ApiClient, str]:
    """Start a session; return it with a client that carries its access token, and its refresh token."""
    session, text = create_refresh_token(user=user, **fields)
    return session, ApiClient(mint_for_sign_in(session).access_token), text


def refresh(text: str) -> Any:
    return ApiClient().post("/oauth/token", {"grant_type": "refresh_token", "refresh_token": text})


def test_a_sign_in_is_listed_with_where_it_came_from(anonymous: ApiClient, db: None) -> None:
    MagicLink.objects.create(
        digest=digest_of("link"),
        email="ada@example.org",
        return_to="/",
        expires_at=now() + dt.timedelta(minutes=15),
    )
    answer = anonymous.request(
        "POST",
        "/auth/magic-link/verify",
        {"token": "link"},
        headers={"User-Agent": "Browser/1\0" + "x" * 999},
    )
    client = ApiClient(answer.json()["access_token"])
    session = RefreshToken.objects.get()
    path = "/users/ada@example.org/sessions"
    assert session.expires_at is not None
    assert client.get(path).json() == {
        "_links": {
            "self": {"href": path},
            "parent": {"href": "/users/ada@example.org"},
            "items": [{"name": str(session.pk), "href": f"{path}/{session.pk}"}],
        },
        "sessions": [
            {
                "id": session.pk,
                "provider": None,
                "address": "127.0.0.1",
                "userAgent": "Browser/1" + "x" * 391,
                "createdAt": format_timestamp(session.created_at),
                "lastUsedAt": format_timestamp(session.created_at),
                "expiresAt": format_timestamp(session.expires_at),
                "amr": [
                    {"method": "link", "at": format_timestamp(from_epoch_ms(int(session.amr["link"] * 1000)))}
                ],
                "current": True,
            }
        ],
    }


def test_sessions_are_listed_newest_first_and_the_caller_s_own_is_marked(world: factories.World) -> None:
    session_of(world.stranger)
    old, _, _ = session_of(world.member, provider="corp", address="10.0.0.7", user_agent="Old/1")
    expired, _, _ = session_of(world.member)
    RefreshToken.objects.filter(pk=expired.pk).update(expires_at=now())
    new, client, _ = session_of(world.member)
    answer = client.get(OWN).json()
    listed = answer["sessions"]
    assert [(row["id"], row["provider"], row["userAgent"], row["current"]) for row in listed] == [
        (new.pk, None, "", True),
        (old.pk, "corp", "Old/1", False),
    ]
    assert [client.get(item["href"]).json() for item in answer["_links"]["items"]] == listed
    assert signed_in(world.stranger).get(f"{OWN}/{old.pk}").status_code == 403
    assert client.get(f"{OWN}/{expired.pk}").status_code == 404


def test_an_ended_session_is_dead_and_the_others_live(world: factories.World) -> None:
    session, client, text = session_of(world.member)
    _, another, another_text = session_of(world.member)
    assert (client.get(OWN).status_code, refresh(text).status_code) == (200, 200)
    answer = another.delete(f"{OWN}/{session.pk}")
    assert (answer.status_code, answer.json()) == (
        200,
        {"success": True, "message": "The session has ended."},
    )
    assert (client.get(OWN).status_code, refresh(text).status_code) == (401, 401)
    assert client.get(OWN).json()["error"] == "invalid_token"
    assert (another.get(OWN).status_code, refresh(another_text).status_code) == (200, 200)
    assert another.delete(f"{OWN}/{session.pk}").status_code == 404


def test_signing_out_everywhere_ends_all_but_pats(world: factories.World) -> None:
    sessions = [session_of(world.member) for _ in range(2)]
    stranger = signed_in(world.stranger)
    _, pat = create_pat(owner=world.member, name="x", scopes=[Scope.CONFIG_READ])
    exchange = {"grant_type": "pat_exchange", "pat": pat}
    minted = ApiClient(ApiClient().post("/oauth/token", exchange).json()["access_token"])
    answer = sessions[0][1].delete(OWN)
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "success": True,
            "message": "member@example.org is signed out everywhere. Sessions that ended: 2.",
        },
    )
    for _, client, text in sessions:
        assert (client.get(OWN).status_code, refresh(text).status_code) == (401, 401)
    assert minted.get("/config/tenants").status_code == 401
    again = ApiClient(ApiClient().post("/oauth/token", exchange).json()["access_token"])
    assert again.get("/config/tenants").status_code == 200
    assert stranger.get("/users/stranger@example.org").status_code == 200


def test_signing_out_everywhere_ends_an_open_link(anonymous: ApiClient, world: factories.World) -> None:
    MagicLink.objects.create(
        digest=digest_of("link"),
        email="member@example.org",
        return_to="/",
        expires_at=now() + dt.timedelta(minutes=15),
    )
    assert signed_in(world.member).delete(OWN).status_code == 200
    assert anonymous.post("/auth/magic-link/verify", {"token": "link"}).status_code == 401


def test_sessions_of_others_are_for_platform_admins(world: factories.World) -> None:
    session, client, _ = session_of(world.member)
    for user in (world.owner, world.tenant_admin, world.stranger):
        other = signed_in(user)
        assert other.get(OWN).status_code == 403
        assert other.delete(OWN).status_code == 403
        assert other.delete(f"{OWN}/{session.pk}").status_code == 403
        own = f"/users/{user.email}/sessions"
        assert other.delete(f"{own}/{session.pk}").status_code == 404
    assert client.get(OWN).status_code == 200
    admin = signed_in(world.platform_admin)
    assert [row["id"] for row in admin.get(OWN).json()["sessions"]] == [session.pk]
    assert admin.delete(f"{OWN}/{session.pk}").status_code == 200
    assert client.get(OWN).status_code == 401
    assert admin.delete(OWN).json()["message"].endswith("Sessions that ended: 0.")
    assert admin.get("/users/unknown@example.org/sessions").status_code == 404
    assert admin.delete("/users/unknown@example.org/sessions").status_code == 404


def test_the_last_use_is_written_once_a_minute(world: factories.World) -> None:
    session, client, text = session_of(world.member)
    assert refresh(text).status_code == 200
    session.refresh_from_db()
    first = session.last_used_at
    assert first is not None
    assert client.get(OWN).json()["sessions"][0]["lastUsedAt"] == format_timestamp(first)
    assert refresh(text).status_code == 200
    session.refresh_from_db()
    assert session.last_used_at == first
    for use in (lambda: refresh(text), lambda: client.get(OWN)):
        RefreshToken.objects.filter(pk=session.pk).update(last_used_at=first - dt.timedelta(minutes=1))
        assert use().status_code == 200
        session.refresh_from_db()
        assert session.last_used_at > first


def test_a_database_that_only_reads_still_answers(world: factories.World) -> None:
    session, client, _ = session_of(world.member)
    RefreshToken.objects.filter(pk=session.pk).update(last_used_at=now() - dt.timedelta(hours=1))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
        assert client.get(OWN).status_code == 200
        # Its end lets the test write again.
        transaction.set_rollback(True)


def test_sessions_that_ended_a_day_ago_are_deleted(world: factories.World) -> None:
    day = dt.timedelta(days=1)
    kept = [session_of(world.member)[0] for _ in range(3)]
    RefreshToken.objects.filter(pk=kept[1].pk).update(expires_at=now() - day + dt.timedelta(minutes=1))
    RefreshToken.objects.filter(pk=kept[2].pk).update(revoked_at=now() - day + dt.timedelta(minutes=1))
    gone = [session_of(world.member)[0] for _ in range(2)]
    RefreshToken.objects.filter(pk=gone[0].pk).update(expires_at=now() - day)
    RefreshToken.objects.filter(pk=gone[1].pk).update(revoked_at=now() - day)
    remove_ended_sessions()
    assert set(RefreshToken.objects.values_list("pk", flat=True)) == {row.pk for row in kept}


MEMBER = "/users/member@example.org"
LINK = "a-magic-link"
BY = Author("x@example.org")


@dataclass(frozen=True)
class Tokens:
    """One of each kind, of the same user."""

    access: str
    bridge: str
    from_pat: str
    refresh: str
    pat: str

    def statuses(self) -> dict[str, int]:
        """Return what each is answered."""
        anonymous = ApiClient()

        def exchange(grant_type: str, **credential: str) -> int:
            return anonymous.post("/oauth/token", {"grant_type": grant_type, **credential}).status_code

        return {
            "access": ApiClient(self.access).get(MEMBER).status_code,
            "bridge": ApiClient(self.bridge).get(f"{MEMBER}/tos").status_code,
            "from PAT": ApiClient(self.from_pat).get("/config/tenants").status_code,
            "refresh": exchange("refresh_token", refresh_token=self.refresh),
            "PAT": exchange("pat_exchange", pat=self.pat),
            "link": anonymous.post("/auth/magic-link/verify", {"token": LINK}).status_code,
        }


def tokens_of(user: User) -> Tokens:
    """Make one token of each kind for ``user``, and an open magic link."""
    session, refresh = create_refresh_token(user=user)
    _, pat = create_pat(owner=user, name="x", scopes=[Scope.CONFIG_READ])
    minted = ApiClient().post("/oauth/token", {"grant_type": "pat_exchange", "pat": pat}).json()
    MagicLink.objects.create(
        digest=digest_of(LINK), email=user.email, return_to="/", expires_at=now() + dt.timedelta(minutes=15)
    )
    return Tokens(
        access=mint_for_sign_in(session).access_token,
        bridge=mint_access_token(
            subject=user.email,
            epoch=user.epoch,
            session=session.pk,
            role=user.role,
            scopes=(),
            tenants=(),
            accounts=(),
            tos_required=True,
        ),
        from_pat=minted["access_token"],
        refresh=refresh,
        pat=pat,
    )


@pytest.fixture
def tokens(world: factories.World) -> Tokens:
    return tokens_of(world.member)


ALL_DEAD = {"access": 401, "bridge": 401, "from PAT": 401, "refresh": 401, "PAT": 401, "link": 401}
ALL_ALIVE = {"access": 200, "bridge": 200, "from PAT": 200, "refresh": 200, "PAT": 200, "link": 200}


def test_all_are_good_to_begin_with(tokens: Tokens) -> None:
    assert tokens.statuses() == ALL_ALIVE


def test_no_token_of_a_deleted_user_is_good_for_a_new_user_of_the_same_address(
    world: factories.World, tokens: Tokens
) -> None:
    admin = signed_in(world.platform_admin)
    assert admin.delete(MEMBER).status_code == 200
    assert tokens.statuses() == ALL_DEAD
    assert admin.put(MEMBER, {"roles": {"primary": "admin"}}).status_code == 200
    assert tokens.statuses() == ALL_DEAD
    assert User.objects.get(email="member@example.org").last_login is None


@pytest.mark.parametrize("path", [MEMBER, "admin"])
def test_no_sign_in_of_a_deactivated_user_is_good_when_it_is_active_again(
    world: factories.World, tokens: Tokens, path: str
) -> None:
    admin = signed_in(world.platform_admin)
    for active in (False, True):
        if path == "admin":
            replace_roles("member@example.org", primary=None, scopes=None, active=active, author=BY)
        else:
            assert admin.put(path, {"active": active}).status_code == 200
        # A PAT is no sign-in: it is good again, and must be exchanged again.
        assert tokens.statuses() == {**ALL_DEAD, "PAT": 200 if active else 401}


def test_a_change_of_roles_ends_no_session(world: factories.World, tokens: Tokens) -> None:
    admin = signed_in(world.platform_admin)
    assert admin.put(MEMBER, {"active": True, "roles": {"primary": "guest"}}).status_code == 200
    assert tokens.statuses() == ALL_ALIVE


def test_a_refresh_at_the_moment_of_a_deactivation_mints_a_dead_token(world: factories.World) -> None:
    session, _ = create_refresh_token(user=world.member)
    replace_roles("member@example.org", primary=None, scopes=None, active=False, author=BY)
    replace_roles("member@example.org", primary=None, scopes=None, active=True, author=BY)
    # ``session`` holds what another transaction read before.
    late = mint_for_sign_in(session).access_token
    assert ApiClient(late).get(MEMBER).status_code == 401


def test_a_session_of_the_admin_site_ends_too(world: factories.World, client: Client) -> None:
    second = factories.make_user("second@example.org", role="admin")
    client.force_login(second)
    assert client.get("/admin/").status_code == 200
    for active in (False, True):
        replace_roles(second.email, primary=None, scopes=None, active=active, author=BY)
        assert client.get("/admin/").status_code == 302


def test_a_process_that_remembers_the_caller_forgets_it_within_five_seconds(
    world: factories.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = 100.0
    remembered = TTLCache[Any, Any](maxsize=10, ttl=3.0, timer=lambda: clock)
    monkeypatch.setattr(rights, "_principal_cache", remembered)
    token = factories.sign_in(world.member)
    assert authenticate_token(token).email == "member@example.org"
    delete_user("member@example.org", author=Author("x@example.org"))  # by another process
    factories.make_user("member@example.org")
    clock += 2.9
    assert authenticate_token(token).rights.user_id == world.member.pk
    clock += 0.2
    with pytest.raises(InvalidToken):
        authenticate_token(token)


def test_the_end_of_one_user_ends_no_token_of_another(world: factories.World, tokens: Tokens) -> None:
    replace_roles("owner@example.org", primary=None, scopes=None, active=False, author=BY)
    assert tokens.statuses() == ALL_ALIVE
