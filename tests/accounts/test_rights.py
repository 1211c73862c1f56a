"""The rights that the database gives a caller, and for how long they are remembered.

Contract: Authentication.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from cachetools import TTLCache

from accounts.access import rights
from accounts.access.credentials import create_pat, create_refresh_token
from accounts.access.principal import Reach, Rights
from accounts.access.rights import (
    authenticate_token,
    latest_rights,
    read_rights,
    rights_of,
)
from accounts.access.scopes import Scope
from accounts.access.tokens import mint_access_token, verify_access_token
from accounts.models import Membership, PermissionGrant, PersonalAccessToken, RefreshToken, User
from tenantadmin.lib.core.errors import InvalidToken
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.conftest import clear_principal_cache

pytestmark = pytest.mark.django_db
HOUR = dt.timedelta(hours=1)


def grant(user: User, resource: str, resource_id: UUID, *permissions: str, **ended: Any) -> None:
    PermissionGrant.objects.create(
        grantee=user, resource=resource, resource_id=resource_id, permissions=list(permissions), **ended
    )


def token_of(user: User, **source: int) -> str:
    """Return an access token of ``user``. ``source`` is the row that it is minted from."""
    claims: dict[str, Any] = {"subject": user.email, "epoch": user.epoch, "role": user.role, **source}
    return mint_access_token(scopes=(), tenants=(), accounts=(), **claims)


def pat_of(user: User, **fields: Any) -> int:
    return create_pat(owner=user, name="x", scopes=[Scope.CONFIG_READ], **fields)[0].pk


def session_of(user: User) -> int:
    return create_refresh_token(user=user)[0].pk


def is_good(text: str) -> bool:
    try:
        return bool(read_rights(verify_access_token(text)))
    except InvalidToken:
        return False


def test_a_user_has_the_rights_of_its_own_rows_that_last(world: factories.World) -> None:
    user = factories.make_user("ada@example.org", role="guest", scopes=[Scope.LOGS_NOTIFY])
    account = factories.make_account("Own", owners=[user])
    tenants = [factories.make_tenant(account, name) for name in ("A", "B", "C")]
    for tenant, role, ends_at in zip(
        tenants, ("admin", "owner", "member"), (None, now() + HOUR, now() - HOUR), strict=True
    ):
        Membership.objects.create(user=user, tenant=tenant, role=role, ends_at=ends_at)
    first, second, third = (tenant.pk for tenant in tenants)
    grant(user, "tenant", third, "config:read", "logs:read", "cache-admin")
    grant(user, "tenant", third, "users:read", expires_at=now() + HOUR)
    grant(user, "tenant", first, "users:read", expires_at=now() - HOUR)
    grant(user, "account", account.pk, "config:write")
    grant(user, "account", account.pk, "users:write", revoked_at=now())
    grant(world.stranger, "account", account.pk, "users:write")
    assert rights_of(user) == Rights(
        user_id=user.pk,
        email="ada@example.org",
        role="guest",
        memberships={first: "admin", second: "owner"},
        owned_accounts=frozenset({account.pk}),
        granted=Reach(
            tenants={third: frozenset({Scope.CONFIG_READ, Scope.USERS_READ, Scope.CACHE_ADMIN})},
            accounts={account.pk: frozenset({Scope.CONFIG_WRITE})},
        ),
        extra_scopes=frozenset({Scope.LOGS_NOTIFY}),
        endpoints=(),
    )


def test_a_user_without_rows_has_no_rights(world: factories.World) -> None:
    user = factories.make_user("ada@example.org")
    assert rights_of(user) == Rights(
        user_id=user.pk,
        email="ada@example.org",
        role="user",
        memberships={},
        owned_accounts=frozenset(),
        granted=Reach(),
        extra_scopes=frozenset(),
        endpoints=(),
    )


def test_a_session_is_good_for_its_own_user_until_it_ends(world: factories.World) -> None:
    own, other = session_of(world.member), session_of(world.owner)
    text = token_of(world.member, session=own)
    held = read_rights(verify_access_token(text))
    assert held == rights_of(world.member)
    assert not is_good(token_of(world.member, session=other))
    RefreshToken.objects.filter(pk=own).update(expires_at=now() - HOUR)
    assert not is_good(text)
    RefreshToken.objects.filter(pk=own).update(expires_at=now() + HOUR)
    assert is_good(text)
    RefreshToken.objects.filter(pk=own).update(revoked_at=now())
    assert not is_good(text)


def test_a_pat_is_good_for_its_own_owner_until_it_ends(world: factories.World) -> None:
    endpoints: list[dict[str, Any]] = [{"methods": ["GET"], "path": "/config/*"}, {"path": "/users/*"}]
    pat_of(world.member)
    own = pat_of(world.member, endpoints=endpoints)
    other = pat_of(world.owner)
    text = token_of(world.member, personal_access_token=own)
    held = read_rights(verify_access_token(text))
    assert held == replace(rights_of(world.member), endpoints=tuple(endpoints))
    assert not is_good(token_of(world.member, personal_access_token=other))
    for ended in ({"expires_at": now() - HOUR}, {"expires_at": now() + HOUR, "revoked_at": now()}):
        PersonalAccessToken.objects.filter(pk=own).update(**ended)
        assert not is_good(text)


@pytest.mark.parametrize(
    ("wildcard", "role", "good"),
    [(True, "admin", True), (True, "user", False), (False, "admin", True), (False, "user", True)],
)
def test_only_a_wildcard_pat_needs_a_platform_admin(
    world: factories.World, wildcard: bool, role: str, good: bool
) -> None:
    admin = world.platform_admin
    claims = verify_access_token(token_of(admin, personal_access_token=pat_of(admin)))
    User.objects.filter(pk=admin.pk).update(role=role)
    claims = replace(claims, has_wildcard=wildcard)
    if good:
        assert read_rights(claims).role == role
        return
    with pytest.raises(InvalidToken):
        read_rights(claims)


@pytest.mark.parametrize(
    "change", [{"is_active": False}, {"epoch": UUID(int=1)}, {"email": "another@example.org"}]
)
def test_a_token_is_good_for_an_active_user_of_its_address_and_epoch(
    world: factories.World, change: dict[str, Any]
) -> None:
    texts = [
        token_of(world.member, session=session_of(world.member)),
        token_of(world.member, personal_access_token=pat_of(world.member)),
    ]
    assert list(map(is_good, texts)) == [True, True]
    User.objects.filter(pk=world.member.pk).update(**change)
    assert list(map(is_good, texts)) == [False, False]


def test_a_deleted_user_has_no_rights(world: factories.World) -> None:
    User.objects.filter(pk=world.stranger.pk).delete()
    with pytest.raises(User.DoesNotExist):
        rights_of(world.stranger)


class TestTheCache:
    """Rights are read once in a few seconds, and for a write of a person each time."""

    @pytest.fixture(autouse=True)
    def _remembered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Remember callers for longer than a test takes. In the other tests, this cache is off."""
        monkeypatch.setattr(rights, "_principal_cache", TTLCache[str, Any](maxsize=10, ttl=3600))

    @pytest.fixture
    def signed_in(self, world: factories.World) -> str:
        return token_of(world.member, session=session_of(world.member))

    @pytest.fixture
    def of_pat(self, world: factories.World) -> str:
        return token_of(world.member, personal_access_token=pat_of(world.member))

    def test_rights_are_read_once(self, signed_in: str, of_pat: str, django_assert_num_queries: Any) -> None:
        for text, is_write, first, again in (
            (signed_in, False, 1, 0),
            (signed_in, True, 1, 1),
            (of_pat, False, 1, 0),
            (of_pat, True, 1, 0),
        ):
            clear_principal_cache()
            with django_assert_num_queries(first):
                caller = authenticate_token(text, is_write=is_write)
            assert caller.claims == verify_access_token(text)
            with django_assert_num_queries(again):
                assert authenticate_token(text, is_write=is_write) == caller
        with django_assert_num_queries(0):
            authenticate_token(of_pat)

    def test_a_write_reads_changed_rights_and_later_reads_keep_them(
        self, signed_in: str, world: factories.World
    ) -> None:
        assert authenticate_token(signed_in).rights.role == "user"
        User.objects.filter(pk=world.member.pk).update(role="guest")
        assert authenticate_token(signed_in).rights.role == "user"
        assert authenticate_token(signed_in, is_write=True).rights.role == "guest"
        assert authenticate_token(signed_in).rights.role == "guest"

    def test_a_caller_is_not_remembered_past_the_end_of_its_token(
        self, signed_in: str, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
    ) -> None:
        ends = authenticate_token(signed_in).claims.expires_at
        for moment, queries in ((ends - 1, 0), (ends, 1), (ends + 1, 1)):
            monkeypatch.setattr(rights, "time", SimpleNamespace(time=lambda moment=moment: moment))
            with django_assert_num_queries(queries):
                authenticate_token(signed_in)

    def test_the_latest_rights_of_a_person_are_read_again(
        self, signed_in: str, of_pat: str, world: factories.World
    ) -> None:
        person, pat = authenticate_token(signed_in), authenticate_token(of_pat)
        Membership.objects.filter(user=world.member).delete()
        latest = latest_rights(person)
        assert latest.claims == person.claims
        assert latest.rights == replace(person.rights, memberships={})
        assert latest_rights(pat) is pat
