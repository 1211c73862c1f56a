"""``manage.py tokens``."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from django.core.management import CommandError, call_command

from accounts.access.credentials import create_pat, create_refresh_token
from accounts.access.scopes import Scope
from accounts.models import Event, PersonalAccessToken, RefreshToken

if TYPE_CHECKING:
    from tests.factories import World

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> list[list[str]]:
    out = io.StringIO()
    call_command("tokens", *arguments, stdout=out)
    return [line.split("\t") for line in out.getvalue().splitlines()]


def test_active_tokens_and_sessions_are_listed_without_their_text(world: World) -> None:
    pat, text = create_pat(
        owner=world.member, name="cube\x1b[2J", scopes=[Scope.CONFIG_READ], tenants=[str(world.tenant.pk)]
    )
    revoked, _ = create_pat(owner=world.member, name="old", scopes=[Scope.CONFIG_READ])
    run("revoke", str(revoked.pk))
    session, _ = create_refresh_token(user=world.owner, provider="google", address="10.0.0.1")

    lines = run("list")
    (token,) = (line for line in lines if line[0] == "token")
    assert token[1:4] == [str(pat.pk), f"{pat.prefix}…", world.member.email]
    assert "\x1b" not in token[4]
    assert token[5:8] == ["config:read", str(world.tenant.pk), "used never"]
    assert text not in str(lines)
    (own,) = run("list", "--user", world.owner.email.upper())
    assert own[:6] == [
        *("session", str(session.pk), f"{session.prefix}…"),
        *(world.owner.email, "google", "10.0.0.1"),
    ]


def test_a_token_and_a_session_end_with_an_event(world: World) -> None:
    pat, _ = create_pat(owner=world.member, name="x", scopes=[Scope.CONFIG_READ])
    session, _ = create_refresh_token(user=world.member)
    for action, row in (("revoke", pat), ("end", session)):
        assert run(action, str(row.pk)) == [["It has ended."]]
        with pytest.raises(CommandError, match="no active one"):
            run(action, str(row.pk))
    assert not PersonalAccessToken.objects.filter(revoked_at=None, pk=pat.pk).exists()
    assert not RefreshToken.objects.filter(revoked_at=None, pk=session.pk).exists()
    kinds = Event.objects.filter(actor="manage.py tokens").values_list("kind", flat=True)
    assert set(kinds) == {"pat.revoked", "session.ended"}


def test_a_user_is_signed_out_everywhere(world: World) -> None:
    epoch = world.member.epoch
    create_refresh_token(user=world.member)
    assert run("end-all", world.member.email) == [[f"1 sessions of {world.member.email} ended."]]
    world.member.refresh_from_db()
    assert world.member.epoch != epoch
    with pytest.raises(CommandError, match="There is no user"):
        run("end-all", "unknown@example.org")
