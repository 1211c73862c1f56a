"""What is done with one credential concerns no other. Contract: Authentication 3 and 4."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from django.db import OperationalError, connection, transaction

from accounts.access import credentials
from accounts.access.credentials import (
    InvalidGrant,
    create_pat,
    create_refresh_token,
    digest_of,
    end_links,
    end_pat,
    end_refresh_token,
    exchange_pat,
    exchange_refresh_token,
    lock_sign_in,
    revoke,
    sign_in_scopes,
    sign_out_everywhere,
)
from accounts.access.rights import rights_of
from accounts.access.scopes import Scope
from accounts.models import Event, MagicLink, PermissionGrant, PersonalAccessToken, RefreshToken, User
from tenantadmin.lib.core.timestamps import format_timestamp, now
from tests import factories
from tests.accounts.support import at_once

if TYPE_CHECKING:
    from accounts.access.credentials import IssuedToken

pytestmark = pytest.mark.django_db


def pat_of(user: User) -> tuple[PersonalAccessToken, str]:
    return create_pat(owner=user, name="ci", scopes=[Scope.CONFIG_READ])


def claims_of(issued: IssuedToken) -> dict[str, Any]:
    return jwt.decode(issued.access_token, options={"verify_signature": False})


def refused() -> list[tuple[str, str]]:
    return list(Event.objects.filter(kind="token.refused").order_by("pk").values_list("subject", "reason"))


def test_the_credentials_of_others_stay_as_they_are(world: factories.World) -> None:
    # The first in the tables.
    pat_of(world.stranger)
    create_refresh_token(user=world.stranger)
    others = list(PersonalAccessToken.objects.values()), list(RefreshToken.objects.values())
    pat, text = pat_of(world.member)
    session, refresh = create_refresh_token(user=world.member)

    minted = claims_of(exchange_pat(text))
    assert (minted["sub"], minted["pat"]) == ("member@example.org", pat.pk)
    refreshed = claims_of(exchange_refresh_token(refresh))
    assert (refreshed["sub"], refreshed["sid"]) == ("member@example.org", session.pk)
    revoke(text)
    revoke(refresh)

    assert others == (
        list(PersonalAccessToken.objects.exclude(pk=pat.pk).values()),
        list(RefreshToken.objects.exclude(pk=session.pk).values()),
    )


def test_each_refused_credential_is_recorded_with_its_own_owner(world: factories.World) -> None:
    users = (world.stranger, world.member, world.member, world.stranger)
    pats = [pat_of(user)[1] for user in users]
    sessions = [create_refresh_token(user=user)[1] for user in users]
    for text in (*pats[1:3], *sessions[1:3]):
        revoke(text)
        with pytest.raises(InvalidGrant):
            (exchange_pat if text in pats else exchange_refresh_token)(text)
    assert refused() == [("member@example.org", InvalidGrant.message)] * 4


def test_each_wildcard_token_that_ended_with_a_role_is_recorded(world: factories.World) -> None:
    admin = world.platform_admin
    texts = [
        create_pat(owner=admin, name="x", scopes=[Scope.CONFIG_READ], tenants=["*"])[1] for _ in range(2)
    ]
    User.objects.filter(pk=admin.pk).update(role="user")
    for text in texts:
        with pytest.raises(InvalidGrant):
            exchange_pat(text)
    reason = "The owner of this wildcard token is no longer a platform admin."
    assert refused() == [(admin.email, reason)] * 2


def test_only_the_open_links_of_an_address_are_used_up(world: factories.World) -> None:
    long_ago = now() - dt.timedelta(days=1)
    for name, email, used_at in (
        ("open", "member@example.org", None),
        ("used", "member@example.org", long_ago),
        ("other", "stranger@example.org", None),
    ):
        MagicLink.objects.create(
            digest=digest_of(name), email=email, return_to="/", expires_at=now(), used_at=used_at
        )
    end_links("member@example.org")
    used = {bytes(link.digest): link.used_at for link in MagicLink.objects.all()}
    assert used.pop(digest_of("open")) is not None
    assert used == {digest_of("used"): long_ago, digest_of("other"): None}


def test_a_refresh_token_of_an_inactive_user_is_refused(world: factories.World) -> None:
    _, text = create_refresh_token(user=world.member)
    User.objects.filter(pk=world.member.pk).update(is_active=False)
    with pytest.raises(InvalidGrant):
        exchange_refresh_token(text)


def test_a_use_is_written_when_the_last_one_is_a_minute_old(
    world: factories.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, text = create_refresh_token(user=world.member)
    began = now()
    for seconds, written in ((0, 0), (59.9, 0), (60, 60), (119.9, 60), (121, 121)):
        moment = began + dt.timedelta(seconds=seconds)
        monkeypatch.setattr(credentials, "now", lambda moment=moment: moment)
        exchange_refresh_token(text)
        used = RefreshToken.objects.get(pk=session.pk).last_used_at
        assert used == began + dt.timedelta(seconds=written), seconds


def test_signing_out_everywhere_ends_the_sessions_that_last(world: factories.World) -> None:
    lasting, expired, ended = (create_refresh_token(user=world.member)[0] for _ in range(3))
    RefreshToken.objects.filter(pk=expired.pk).update(expires_at=now())
    end_refresh_token(ended, actor="a@example.org")
    create_refresh_token(user=world.owner)
    epoch = world.member.epoch
    assert sign_out_everywhere(world.member, actor="b@example.org") == 1
    assert world.member.epoch != epoch
    events = Event.objects.filter(kind="session.ended").order_by("pk")
    assert list(events.values_list("actor", "before__session")) == [
        ("a@example.org", ended.pk),
        ("b@example.org", lasting.pk),
    ]


def test_sign_ins_of_one_address_wait_for_each_other(db: None) -> None:
    def can_lock(email: str) -> bool:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '50ms'")
                lock_sign_in(email)
        except OperationalError:
            return False
        return True

    lock_sign_in("ada@example.org")
    calls = [partial(can_lock, email) for email in ("ada@example.org", "bob@example.org")]
    assert at_once(calls) == [False, True]


def test_a_credential_ends_once(world: factories.World) -> None:
    pat, _ = pat_of(world.member)
    session, _ = create_refresh_token(user=world.member)
    assert [end_pat(pat, actor="a@example.org") for _ in range(2)] == [True, False]
    assert [end_refresh_token(session, actor="a@example.org") for _ in range(2)] == [True, False]


def test_a_pat_is_recorded_with_its_accounts_and_its_end(world: factories.World) -> None:
    ends = now() + dt.timedelta(days=1)
    account = str(world.account.pk)
    pat, text = create_pat(
        owner=world.owner, name="ci", scopes=[Scope.CONFIG_READ], accounts=[account], expires_at=ends
    )
    after = Event.objects.get(kind="pat.created").after
    assert after is not None
    assert (after["accounts"], after["expiresAt"]) == ([account], format_timestamp(ends))
    assert claims_of(exchange_pat(text))["accounts"] == [account]
    assert PersonalAccessToken.objects.get(pk=pat.pk).accounts == [account]


def test_of_a_session_without_a_device_nothing_but_its_prefix_is_known(world: factories.World) -> None:
    session, text = create_refresh_token(user=world.member)
    stored = RefreshToken.objects.get(pk=session.pk)
    assert stored.prefix == text[: len("tas_refresh_") + 8]
    assert (stored.provider, stored.address, stored.user_agent) == ("", "", "")


def test_a_sign_in_has_the_scopes_of_grants_and_of_the_user(world: factories.World) -> None:
    user = factories.make_user("new@example.org")
    assert sign_in_scopes(rights_of(user)) == frozenset()
    User.objects.filter(pk=user.pk).update(scopes=[Scope.LOGS_NOTIFY])
    PermissionGrant.objects.create(
        grantee=user,
        resource="tenant",
        resource_id=world.tenant.pk,
        permissions=[Scope.USERS_READ],
        granted_by=world.owner,
    )
    user.refresh_from_db()
    assert sign_in_scopes(rights_of(user)) == {Scope.LOGS_NOTIFY, Scope.USERS_READ}
