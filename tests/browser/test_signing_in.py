"""Signing in from end to end: Chromium, a real OpenID provider, real mail, Redis and PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, sync_playwright

from accounts.models import Account, RefreshToken, Tenant, User
from tests.accounts.mailbox import running_inbox
from tests.browser.provider import CLIENT_ID, CLIENT_SECRET, EMAIL, PASSWORD
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django.live_server_helper import LiveServer

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ROOT = Path(__file__).parents[2]
#: A page of the service that needs nothing, to land on.
LANDING = "/.well-known/jwks.json"


@pytest.fixture
def service(live_server: LiveServer, settings: Any) -> str:
    settings.PUBLIC_BASE_URL = settings.DASHBOARD_URL = live_server.url
    settings.RATE_LIMIT_NAMESPACE = f"test-{uuid.uuid4().hex}"
    return str(live_server.url)


@pytest.fixture
def provider(service: str, settings: Any, tmp_path: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "tests.browser.provider", str(tmp_path), f"{service}/auth/callback"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:")
            settings.SIGNIN_PROVIDERS = ["corp"]
            settings.SOCIALACCOUNT_PROVIDERS = {
                "openid_connect": {
                    "OAUTH_PKCE_ENABLED": True,
                    "APPS": [
                        {
                            "provider_id": "corp",
                            "name": "corp",
                            "client_id": CLIENT_ID,
                            "secret": CLIENT_SECRET,
                            "settings": {"server_url": address, "oauth_pkce_enabled": True},
                        }
                    ],
                }
            }
            yield address
        finally:
            process.terminate()


@contextmanager
def browsing(chromium: str) -> Iterator[Page]:
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as home:
        browser = playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-background-networking", "--no-first-run"],
            env={**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home},
        )
        try:
            yield browser.new_page()
        finally:
            browser.close()


def tokens_of(page: Page) -> dict[str, str]:
    page.wait_for_url("**access_token=**")
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def read_profile(tokens: dict[str, str]) -> Any:
    answer = ApiClient(tokens["access_token"]).get(f"/users/{EMAIL}")
    assert answer.status_code == 200
    return answer.json()


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


def test_a_user_who_refuses_is_not_signed_in(chromium: str, service: str, provider: str) -> None:
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
        page.click("button[type=submit]")
        page.wait_for_selector("[role=alert]")
        assert "already used" in page.inner_text("main")
    assert read_profile(tokens)["tenants"][0]["role"] == "owner"
