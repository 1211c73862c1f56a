"""Pages work in a browser under their Content-Security-Policy, and ask no other host."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from tests.browser.browsing import browsing, requested_hosts

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_docs_show_the_contract_and_drop_tokens_from_the_address(chromium: str, service: str) -> None:
    with browsing(chromium) as page:
        hosts = requested_hosts(page)
        page.goto(f"{service}/docs?access_token=hush&refresh_token=hush&expires_in=3600")
        page.wait_for_selector(".opblock-summary")
        assert page.url == f"{service}/docs"
        page.fill(".operation-filter-input", "Rules")
        page.wait_for_selector("[data-tag=Discovery]", state="detached")
        page.click(".opblock-summary >> nth=0")
        page.wait_for_selector(".opblock-body")
        assert hosts == {urlsplit(service).netloc}
