"""Pages work in a browser under their Content-Security-Policy, and ask no other host."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.browser.browsing import browsing

if TYPE_CHECKING:
    from playwright.sync_api import Page, Request

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def asked_hosts(page: Page) -> set[str]:
    """Return the set that collects the hosts of all requests of ``page`` from now on."""
    hosts: set[str] = set()

    def note(request: Request) -> None:
        if not request.url.startswith("data:"):
            hosts.add(urlsplit(request.url).netloc)

    page.on("request", note)
    return hosts


def test_the_docs_show_the_contract_and_drop_tokens_from_the_address(chromium: str, service: str) -> None:
    with browsing(chromium) as page:
        hosts = asked_hosts(page)
        page.goto(f"{service}/docs?access_token=hush&refresh_token=hush&expires_in=3600")
        page.wait_for_selector(".opblock-summary")
        assert page.url == f"{service}/docs"
        page.click(".opblock-summary >> nth=0")
        page.wait_for_selector(".opblock-body")
        assert hosts == {urlsplit(service).netloc}
