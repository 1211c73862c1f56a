"""Signing in from end to end: Chromium, a real OpenID provider, real mail, Redis and PostgreSQL."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest

from accounts.models import Account, RefreshToken, Tenant, User
from tests.accounts.support import running_inbox
from tests.browser.browsing import browsing
from tests.browser.provider import EMAIL, PASSWORD
from tests.browser.signing_in import LANDING, read_profile, tokens_of

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_through_an_identity_provider(chromium: str, service: str, provider: str) -> None:
    with browsing(chromium) as page:
        page.goto(f"{service}/auth/login?redirect={LANDING}")
        assert page.url.startswith(provider)
        page.fill("input[name=login]", EMAIL)
        page.fill("input[name=password]", PASSWORD)
        page.click("button[type=submit]")
        page.click("button[name=action][value=grant]")
        tokens = tokens_of(page)
        assert urlsplit(page.url).path == LANDING
        # The provider knows the browser now; it asks for consent at most.
        page.goto(f"{service}/auth/login?redirect={LANDING}")
        if page.url.startswith(provider):
            page.click("button[name=action][value=grant]")
        assert tokens_of(page)["access_token"] != tokens["access_token"]

    profile = read_profile(tokens)
    assert profile["identity"]["provider"] == "corp"
    assert profile["displayName"] == "Ada Lovelace"
    assert [entry["role"] for entry in profile["tenants"]] == ["owner"]
    counts = (User.objects.count(), Account.objects.count(), Tenant.objects.count())
    assert counts == (1, 1, 1)
    assert RefreshToken.objects.count() == 2


def test_a_refusing_user_is_not_signed_in(chromium: str, service: str, provider: str) -> None:
    with browsing(chromium) as page:
        page.goto(f"{service}/auth/login")
        assert page.url.startswith(provider)
        page.fill("input[name=login]", EMAIL)
        page.fill("input[name=password]", PASSWORD)
        page.click("button[type=submit]")
        with page.expect_response(lambda response: "/auth/callback" in response.url) as answer:
            page.click("button[name=action][value=cancel]")
        assert answer.value.status == 401
    assert not User.objects.exists()


def test_by_a_mailed_link(chromium: str, service: str, settings: Any) -> None:
    with running_inbox() as inbox, browsing(chromium) as page:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", inbox.port
        sent = page.request.post(f"{service}/auth/magic-link", data={"email": EMAIL, "redirect": LANDING})
        assert (sent.status, sent.json()) == (202, {"status": "sent"})
        # A mail scanner looks first.
        assert page.request.get(inbox.link()).status == 200
        page.goto(inbox.link())
        page.click("button[type=submit]")
        tokens = tokens_of(page)
        assert urlsplit(page.url).path == LANDING
        page.goto(inbox.link())
        page.wait_for_selector("[role=alert]")
        assert "already used" in page.inner_text("main")
        assert page.inner_text("a.button") == f"Mail a new link to {EMAIL}"
    assert read_profile(tokens)["tenants"][0]["role"] == "owner"
