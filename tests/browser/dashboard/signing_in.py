"""Sign in to the dashboard, with its sign-in page and without it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec

from accounts.signin.flow import Device, Identity, complete_sign_in
from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from accounts.models import User


def sign_in_by_mail(page: Page, home: str, email: str) -> None:
    """Sign in with a mailed link, as the sign-in page of a service with demo data explains it."""
    page.goto(home)
    page.fill("input[name=email]", email)
    page.click("text=Mail me a sign-in link")
    command = page.inner_text(".callout pre")
    link = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
    page.goto(link.strip())
    page.click("button")


def sign_in(user: User) -> str:
    """Return the query with the tokens of a new sign-in, after ``user`` has accepted the terms."""
    user.refresh_from_db()
    client = ApiClient(factories.sign_in(user))
    terms = client.get("/tos").content.decode()
    assert client.post("/users/me/tos", {"markdown": terms}).status_code == 204
    return urlencode(
        msgspec.structs.asdict(complete_sign_in(Identity(email=user.email, email_verified=True), Device()))
    )
