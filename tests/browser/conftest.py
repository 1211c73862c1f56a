"""The service, an OpenID provider, and a Chromium found on the machine.

Without a Chromium these tests are left out, and the summary says so; without tsc the check of types, and
without Prettier that of the format.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Condition
from typing import TYPE_CHECKING, Any

import pytest
from django.core.signals import request_finished, request_started
from django.db import connections
from playwright.sync_api import expect

from tests.browser.browsing import find_chromium, find_prettier, shared_browser
from tests.browser.providers import running_provider

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter
    from playwright.sync_api import Browser
    from pytest_django.live_server_helper import LiveServer

# As long as all other waits: a machine may be slow.
expect.set_options(timeout=30_000)

_left_out: list[str] = []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing = []
    if find_chromium() is None:
        missing.append("browser")
    if shutil.which(os.environ.get("TSC", "tsc")) is None:
        missing.append("typescript")
    if find_prettier() is None:
        missing.append("prettier")
    left_out = [item for item in items if any(item.get_closest_marker(name) for name in missing)]
    if left_out:
        _left_out.extend(item.nodeid for item in left_out)
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    if _left_out:
        terminalreporter.write_line(
            f"{len(_left_out)} browser tests were LEFT OUT: no Chromium, tsc or Prettier on this machine. "
            "Install them (Debian: apt-get install chromium node-typescript npm, with which make browser "
            "installs Prettier), or set CHROMIUM and TSC.",
            yellow=True,
        )


@pytest.fixture(scope="session")
def browser(django_db_setup: None) -> Iterator[Browser]:
    """One browser for all tests; each opens a page with cookies and a cache of its own."""
    chromium = find_chromium()
    assert chromium is not None
    with pytest.MonkeyPatch.context() as patch, shared_browser(chromium) as browser:
        # Playwright keeps an event loop in this thread. There Django refuses to use the database, and has
        # connections of its own.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        yield browser
        connections.close_all()


@pytest.fixture(scope="session")
def chromium(browser: Browser) -> str:
    """The path of the browser, which runs."""
    return str(find_chromium())


@contextmanager
def all_answered() -> Iterator[None]:
    """Wait at the end for requests under way: the next test would find what they write."""
    count, changed = 0, Condition()

    def add(number: int) -> None:
        nonlocal count
        with changed:
            # One of another server may have started before.
            count = max(0, count + number)
            changed.notify_all()

    def begin(**_: Any) -> None:
        add(1)

    def end(**_: Any) -> None:
        add(-1)

    request_started.connect(begin)
    request_finished.connect(end)
    yield
    with changed:
        changed.wait_for(lambda: count == 0, timeout=30)
    request_started.disconnect(begin)
    request_finished.disconnect(end)


@pytest.fixture
def service(live_server: LiveServer, settings: Any) -> Iterator[str]:
    settings.PUBLIC_BASE_URL = settings.DASHBOARD_URL = live_server.url
    settings.RATE_LIMIT_NAMESPACE = f"test-{uuid.uuid4().hex}"
    with all_answered():
        yield str(live_server.url)


@pytest.fixture
def provider(service: str, settings: Any, tmp_path: Path) -> Iterator[str]:
    with running_provider("allauth", service, settings, tmp_path) as address:
        yield address
