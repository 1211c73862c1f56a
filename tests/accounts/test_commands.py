"""``create_admin`` and ``create_pat``."""

from __future__ import annotations

import datetime as dt
import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from allauth.mfa.models import Authenticator
from django.core.management import CommandError, call_command

from accounts.access.credentials import exchange_pat
from accounts.models import PersonalAccessToken, User
from accounts.signin.flow import Device, Identity, complete_sign_in
from tenantadmin.lib.core.timestamps import now
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from tests import factories

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
