"""``create_admin`` and ``create_pat``."""

from __future__ import annotations

import datetime as dt
import io
import json
import uuid
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING, Any

import pytest
from allauth.mfa.models import Authenticator
from django.core.management import CommandError, call_command

from accounts.access.credentials import create_pat, create_refresh_token, exchange_pat
from accounts.access.scopes import Scope
from accounts.management.arguments import tenant_id
from accounts.models import Event, PersonalAccessToken, RefreshToken, Tenant, User
from accounts.signin.flow import Device, Identity, complete_sign_in
from accounts.tenants.lifecycle import remove_old_tombstones
from tenantadmin.lib.core.timestamps import now
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from tests import factories
    from tests.factories import World


pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


class TestCreateAdmin:
    def test_generates_a_password_without_a_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO())
        first, second = run("create_admin", " Ada@Example.org").splitlines()
        assert first == "ada@example.org is a new platform admin."
        user = User.objects.get(email="ada@example.org")
        assert user.is_staff
        assert user.check_password(second.removeprefix("Password for the admin site: "))

    def test_prints_a_link_where_a_second_factor_is_required(
        self, monkeypatch: pytest.MonkeyPatch, settings: Any
    ) -> None:
        settings.STAFF_SECOND_FACTOR = True
        monkeypatch.setattr("sys.stdin", io.StringIO())
        link = run("create_admin", "ada@example.org").splitlines()[-1]
        prefix = "To add a second factor, once, within 24 h: http://testserver/admin/account/enrol/?t="
        assert link.startswith(prefix)
        Authenticator.objects.create(user=User.objects.get(), type="totp", data={})
        assert "second factor" not in run("create_admin", "ada@example.org")

    def test_running_it_again_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO())
        run("create_admin", "ada@example.org")
        before = User.objects.get().password
        assert run("create_admin", "ada@example.org") == "ada@example.org is a platform admin.\n"
        assert User.objects.get().password == before

    @pytest.mark.parametrize("stored", [None, ""])
    def test_sets_a_first_password(self, monkeypatch: pytest.MonkeyPatch, stored: str | None) -> None:
        complete_sign_in(Identity(email="ada@example.org", email_verified=True), Device())
        assert not User.objects.get().has_usable_password()
        if stored is not None:
            # As earlier versions left it.
            User.objects.update(password=stored)

        monkeypatch.setattr("sys.stdin", io.StringIO())
        first, second = run("create_admin", "ada@example.org").splitlines()
        assert first == "ada@example.org is a platform admin."
        assert User.objects.get().check_password(second.removeprefix("Password for the admin site: "))

    def test_promotes_and_activates_an_existing_user(self, monkeypatch: pytest.MonkeyPatch) -> None:
        User.objects.create(email="ada@example.org", role="guest", is_active=False)
        monkeypatch.setattr("sys.stdin", io.StringIO("correct horse battery\n"))
        assert "Password" not in run("create_admin", "ada@example.org", "--password-stdin")
        user = User.objects.get()
        assert user.is_staff
        assert user.check_password("correct horse battery")

    @pytest.mark.parametrize(
        ("email", "password", "message"),
        [
            ("nonsense", "correct horse battery", "Give an email address like ada@example.org."),
            ("ada@example.org", "", "--password-stdin: there is no password on stdin."),
            ("ada@example.org", "short", "This password is too short"),
        ],
    )
    def test_refuses(self, monkeypatch: pytest.MonkeyPatch, email: str, password: str, message: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(password + "\n"))
        with pytest.raises(CommandError, match=message):
            run("create_admin", email, "--password-stdin")
        assert not User.objects.exists()


@pytest.mark.usefixtures("world")
class TestCreatePat:
    def test_prints_the_token_alone(self) -> None:
        printed = run(
            "create_pat", "--owner", "ADMIN@example.org", "--scope", "config:read", "--scope",
            "cache-admin", "--tenant", "*", "--expires-days", "2",
        )  # fmt: skip
        text = printed.removesuffix("\n")
        assert text.startswith("tas_pat_")
        assert len(text) == len("tas_pat_") + 43
        assert exchange_pat(text).scope == "cache-admin config:read"
        pat = PersonalAccessToken.objects.get()
        assert pat.tenants == ["*"]
        assert pat.expires_at is not None
        assert abs(pat.expires_at - now() - dt.timedelta(days=2)) < dt.timedelta(minutes=1)

    def test_makes_a_token_for_a_year_unless_told_otherwise(
        self, world: factories.World, settings: Any
    ) -> None:
        arguments = ["create_pat", "--owner", world.owner.email, "--scope", "config:read"]
        run(*arguments)
        pat = PersonalAccessToken.objects.get()
        assert pat.expires_at is not None
        assert abs(pat.expires_at - now() - dt.timedelta(days=365)) < dt.timedelta(minutes=1)
        settings.PAT_MAX_ACTIVE = 1
        with pytest.raises(CommandError, match=r"owner@example.org has 1 active personal access tokens"):
            run(*arguments)

    @pytest.mark.parametrize("reach", ["--tenant", "--account"])
    def test_prints_the_reach_of_a_token_without_tenants_and_accounts(
        self, reach: str, world: factories.World, capsys: pytest.CaptureFixture[str]
    ) -> None:
        call_command("create_pat", "--owner", "admin@example.org", "--scope", "config:read", "users:read")
        printed = capsys.readouterr()
        assert printed.err.startswith("This token names no tenant and no account, so it covers only")
        client = ApiClient(exchange_pat(printed.out.removesuffix("\n")).access_token)
        listing = client.get("/config/tenants")
        assert json.loads(listing.getvalue())["_links"]["items"] == []
        assert client.get(f"/config/tenants/{world.tenant.pk}").status_code == 403
        assert client.get("/users/member@example.org").status_code == 403
        assert client.get("/users/admin@example.org/tokens").status_code == 200

        call_command("create_pat", "--owner", "admin@example.org", "--scope", "config:read", reach, "*")
        assert capsys.readouterr().err == ""

    def test_several_values_may_follow_one_option(self, world: factories.World) -> None:
        tenant = str(world.tenant.pk)
        run(
            "create_pat",
            "--owner",
            "owner@example.org",
            "--scope",
            "logs:read",
            "logs:query",
            "--tenant",
            tenant,
        )
        pat = PersonalAccessToken.objects.get()
        assert (pat.scopes, pat.tenants, pat.accounts) == (["logs:query", "logs:read"], [tenant], [])

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--owner", "unknown@example.org", "--scope", "config:read"], "There is no active user"),
            (["--owner", "admin@example.org", "--scope", "all"], "invalid choice: 'all'"),
            (["--owner", "admin@example.org"], "--scope"),
            (
                ["--owner", "admin@example.org", "--scope", "config:read", "--tenant", "x"],
                "--tenant takes a UUID or '\\*'.",
            ),
            (
                ["--owner", "owner@example.org", "--scope", "config:read", "--tenant", "*"],
                "Only a platform admin may own tokens with a wildcard.",
            ),
            (
                ["--owner", "owner@example.org", "--scope", "tos:publish"],
                "The owner's role and memberships do not give the scope 'tos:publish'.",
            ),
            (
                ["--owner", "admin@example.org", "--scope", "config:read", "--expires-days", "0"],
                "--expires-days is a number from 1",
            ),
        ],
    )
    def test_refuses(self, arguments: list[str], message: str) -> None:
        with pytest.raises(CommandError, match=message):
            run("create_pat", *arguments)
        assert not PersonalAccessToken.objects.exists()


def run_tokens(*arguments: str) -> list[list[str]]:
    out = io.StringIO()
    call_command("tokens", *arguments, stdout=out)
    return [line.split("\t") for line in out.getvalue().splitlines()]


def test_active_tokens_and_sessions_are_listed_without_their_text(world: World) -> None:
    pat, text = create_pat(
        owner=world.member, name="cube\x1b[2J", scopes=[Scope.CONFIG_READ], tenants=[str(world.tenant.pk)]
    )
    revoked, _ = create_pat(owner=world.member, name="old", scopes=[Scope.CONFIG_READ])
    run_tokens("revoke", str(revoked.pk))
    session, _ = create_refresh_token(user=world.owner, provider="google", address="10.0.0.1")

    lines = run_tokens("list")
    (token,) = (line for line in lines if line[0] == "token")
    assert token[1:4] == [str(pat.pk), f"{pat.prefix}…", world.member.email]
    assert "\x1b" not in token[4]
    assert token[5:8] == ["config:read", str(world.tenant.pk), "used never"]
    assert text not in str(lines)
    (own,) = run_tokens("list", "--user", world.owner.email.upper())
    assert own[:6] == [
        *("session", str(session.pk), f"{session.prefix}…"),
        *(world.owner.email, "google", "10.0.0.1"),
    ]


def test_a_token_and_a_session_end_with_an_event(world: World) -> None:
    pat, _ = create_pat(owner=world.member, name="x", scopes=[Scope.CONFIG_READ])
    session, _ = create_refresh_token(user=world.member)
    for action, row in (("revoke", pat), ("end", session)):
        assert run_tokens(action, str(row.pk)) == [["It has ended."]]
        with pytest.raises(CommandError, match="no active one"):
            run_tokens(action, str(row.pk))
    assert not PersonalAccessToken.objects.filter(revoked_at=None, pk=pat.pk).exists()
    assert not RefreshToken.objects.filter(revoked_at=None, pk=session.pk).exists()
    kinds = Event.objects.filter(actor="manage.py tokens").values_list("kind", flat=True)
    assert set(kinds) == {"pat.revoked", "session.ended"}


def test_a_user_is_signed_out_everywhere(world: World) -> None:
    epoch = world.member.epoch
    create_refresh_token(user=world.member)
    assert run_tokens("end-all", world.member.email) == [[f"1 sessions of {world.member.email} ended."]]
    world.member.refresh_from_db()
    assert world.member.epoch != epoch
    with pytest.raises(CommandError, match="There is no user"):
        run_tokens("end-all", "unknown@example.org")


UNKNOWN = uuid.UUID("11111111-2222-4333-8444-555555555555")


def test_a_tenant_is_known_as_long_as_its_history_stands(world: World, settings: Any) -> None:
    tenant = world.tenant.pk
    assert tenant_id(str(tenant)) == tenant

    Tenant.objects.filter(pk=tenant).update(deleted_at=now() - 2 * settings.TOMBSTONE_LIFETIME)
    assert tenant_id(str(tenant)) == tenant

    assert remove_old_tombstones() == 1
    assert tenant_id(str(tenant)) == tenant


@pytest.mark.django_db
def test_an_unknown_tenant_is_none() -> None:
    with pytest.raises(ArgumentTypeError, match=f"^There is no tenant {UNKNOWN}.$"):
        tenant_id(str(UNKNOWN))
    with pytest.raises(ArgumentTypeError, match=r"^'x\\x1b' is no tenant's id, which is a UUID.$"):
        tenant_id("x\x1b")


@pytest.mark.django_db
@pytest.mark.parametrize("command", [["import_logs", "."], ["sql", "SELECT 1"], ["rebuild"]])
def test_every_command_refuses_it(command: list[str]) -> None:
    with pytest.raises(CommandError, match=f"argument --tenant: There is no tenant {UNKNOWN}."):
        call_command(*command, f"--tenant={UNKNOWN}")
