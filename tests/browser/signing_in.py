"""What tests of signing in share: where they land, and whom the tokens are of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from tests.browser.provider import EMAIL
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from playwright.sync_api import Page

#: A page of the service that needs nothing, to land on.
LANDING = "/.well-known/jwks.json"


def tokens_of(page: Page) -> dict[str, str]:
    page.wait_for_url("**access_token=**")
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def read_profile(tokens: dict[str, str]) -> Any:
    answer = ApiClient(tokens["access_token"]).get(f"/users/{EMAIL}")
    assert answer.status_code == 200
    return answer.json()
