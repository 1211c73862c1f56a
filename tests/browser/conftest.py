"""A Chromium found on the machine; without one these tests are left out, and the summary says so."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_left_out: list[str] = []


def find_chromium() -> str | None:
    """Return the browser's path: `CHROMIUM`, or the first known name that is installed."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if find_chromium() is not None:
        return
    browser_tests = [item for item in items if item.get_closest_marker("browser")]
    if browser_tests:
        _left_out.extend(item.nodeid for item in browser_tests)
        config.hook.pytest_deselected(items=browser_tests)
        items[:] = [item for item in items if item not in browser_tests]


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    if _left_out:
        terminalreporter.write_line(
            f"{len(_left_out)} browser tests were LEFT OUT: no Chromium on this machine. "
            "Install one (Debian: apt-get install chromium) or set CHROMIUM.",
            yellow=True,
        )


@pytest.fixture(scope="session")
def chromium() -> str:
    found = find_chromium()
    assert found is not None
    return found
