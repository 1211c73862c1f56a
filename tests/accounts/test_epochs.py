"""Tokens belong to the user's row: what is minted before its epoch moves stays dead.

Contract: Authentication, 3 and 4.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from cachetools import TTLCache

from accounts.access import rights
from accounts.access.credentials import (
    create_pat,
    create_refresh_token,
    digest_of,
    mint_for_sign_in,
)
from accounts.access.rights import authenticate_token
from accounts.access.scopes import Scope
from accounts.access.tokens import mint_access_token
from accounts.models import MagicLink, User
from accounts.readers.rule import Author
from accounts.roles import replace_roles
from accounts.users import delete_user
from tenantadmin.lib.core.errors import InvalidToken
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.accounts.support import signed_in
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db
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
