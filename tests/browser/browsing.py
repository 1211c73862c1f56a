"""A Chromium with one page."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page, Request

#: What Chromium says of an answer such as 401, which tests assert themselves.
_ANSWERED: Final = "Failed to load resource: the server responded with a status of 4"


@contextmanager
def browsing(chromium: str, **context: Any) -> Iterator[Page]:
    """Open a page in a new context with these options; fail at the end if it has reported an error."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as home:
        browser = playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-background-networking", "--no-first-run"],
            env={**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home},
        )
        try:
            page = browser.new_page(**context)
            problems: list[str] = []
            page.on(
                "console", lambda message: problems.append(message.text) if message.type == "error" else None
            )
            page.on("pageerror", lambda error: problems.append(str(error)))
            yield page
            # A violation of the Content-Security-Policy is one.
            unexpected = [it for it in problems if not it.startswith(_ANSWERED)]
            assert not unexpected, unexpected
        finally:
            browser.close()


def asked_hosts(page: Page) -> set[str]:
    """Return the set that collects the hosts of all requests of ``page`` from now on."""
    hosts: set[str] = set()

    def note(request: Request) -> None:
        if not request.url.startswith("data:"):
            hosts.add(urlsplit(request.url).netloc)

    page.on("request", note)
    return hosts
