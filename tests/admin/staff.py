"""Browsers of staff, and what tests of their pages share."""

from __future__ import annotations

import datetime as dt
import re
import time
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, generate_totp_secret, hotp_value
from django.test import Client
from django.urls import reverse

from accounts.models import Membership, User
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.admin.filling import RULE

if TYPE_CHECKING:
    from django.db.models import Model
    from django.test.client import _MonkeyPatchedWSGIResponse as Answer

    from accounts.models import Tenant


def signed_in(user: User | None) -> Client:
    """Return a client in which ``user`` is signed in; if it is None, no user."""
    client = Client()
    if user is not None:
        client.force_login(user)
    return client


def prove_factor(client: Client, user: User) -> None:
    """Let the session of a browser have just proven a second factor of ``user``."""
    factor, _ = Authenticator.objects.get_or_create(user=user, type="totp", defaults={"data": {}})
    session = client.session
    session["account_authentication_methods"] = [
        {"method": "mfa", "at": time.time(), "id": factor.pk, "type": "totp"}
    ]
    session["account_authentication_methods_user"] = str(user.pk)
    session.save()


def support_client() -> Client:
    """Return a browser of a new member of the support."""
    return signed_in(factories.make_user("support@example.org", is_support=True))


def page_text(client: Client, address: str, *, status: int = 200, **query: Any) -> str:
    """Return the text of a page."""
    answer = client.get(address, query)
    assert answer.status_code == status, answer.content.decode()[-2000:]
    return text_of(answer.content.decode().partition('<div class="page">')[2])


def require_roles(looks: dict[str, str], acts: dict[str, str], world: factories.World, admin: Client) -> None:
    """Assert who gets which of these pages: support and admins ``looks``, admins alone ``acts``."""
    support = support_client()
    for address in looks.values():
        assert admin.get(address).status_code == 200, address
        assert support.get(address).status_code == 200, address
    for address in acts.values():
        assert admin.get(address).status_code == 200, address
        for refused in (support.get(address), support.post(address, {"reason": "x"})):
            assert refused.status_code == 403, address
            assert "Your role on this site does not allow this." in refused.content.decode()
    for user in (None, world.owner, world.member, world.stranger):
        client = signed_in(user)
        for address in (*looks.values(), *acts.values()):
            for answer in (client.get(address), client.post(address, {"reason": "x"})):
                assert answer.status_code == 302, address
                assert answer["Location"].startswith("/admin/login/")


def act(staff: Client, name: str, *rows: Model, confirmed: bool = True, reason: str = "asked to") -> str:
    """Choose ``rows`` in their list and do ``name`` to them; returns what the page says then."""
    options = rows[0]._meta
    form: dict[str, Any] = {"action": name, "_selected_action": [str(row.pk) for row in rows]}
    if confirmed:
        form.update(confirmed="yes", reason=reason)
    address = reverse(f"admin:{options.app_label}_{options.model_name}_changelist")
    return unescape(staff.post(address, form, follow=True).content.decode())


_CELL = r'<(t[hd]) class="[^"]*?\bfield-(\w+)[^>]*>(.*?)</\1>'


def cells(listed: str, *names: str) -> list[tuple[str, str]]:
    """Return (column, text) of the cells of a list in the columns ``names``, row by row."""
    found = [(name, text_of(cell)) for _, name, cell in re.findall(_CELL, listed, re.DOTALL)]
    return [(name, text) for name, text in found if name in names]


def text_of(html: str) -> str:
    """Return the text of a piece of HTML, with single spaces."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def labels(shown: str) -> set[str]:
    """Return the labels of the fields on the page of a row."""
    return {text_of(label) for label in re.findall(r"<label[^>]*>(.*?)</label>", shown, re.DOTALL)}


PASSWORD = "correct horse battery"


def by_password(client: Client, target: str = "/admin/") -> Answer:
    form = {"username": "ada@example.org", "password": PASSWORD, "next": target}
    return client.post("/admin/login/", form)


def add_totp(user: User) -> str:
    """Add an authenticator app and recovery codes; return the app's secret."""
    secret = str(generate_totp_secret())
    TOTP.activate(user, secret)
    RecoveryCodes.activate(user)
    return secret


def code_of(secret: str) -> str:
    return str(format_hotp_value(hotp_value(secret, int(time.time()) // 30)))


@pytest.fixture
def staff(client: Client, world: factories.World) -> Client:
    client.force_login(world.platform_admin)
    return client


@pytest.fixture
def support(world: factories.World) -> Client:
    client = Client()
    client.force_login(factories.make_user("support@example.org", is_support=True))
    return client


@pytest.fixture
def tenant(world: factories.World) -> Tenant:
    """A tenant with one rule."""
    write_ruleset(tenant_id=world.tenant.pk, document={"rules": [RULE]}, actor="owner@example.org")
    return world.tenant


@pytest.fixture
def access(support: Client, world: factories.World) -> Client:
    """A member of support with limited access to the tenant's log."""
    Membership.objects.create(
        user=User.objects.get(email="support@example.org"),
        tenant=world.tenant,
        role="member",
        ends_at=now() + dt.timedelta(hours=1),
    )
    return support
