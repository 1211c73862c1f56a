"""Browsers of staff, and what tests of their pages share."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from allauth.mfa.models import Authenticator
from django.test import Client

from tests import factories
from tests.admin.reading import text_of

if TYPE_CHECKING:
    from accounts.models import User


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
