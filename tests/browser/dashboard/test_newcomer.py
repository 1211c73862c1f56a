"""A newcomer's first five minutes with the real service, as `make run` starts it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect

from tests.browser.browsing import opened_page
from tests.browser.dashboard.signing_in import sign_in_by_mail
from tests.browser.dashboard.watching import edit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[3]
#: What the tests' own settings put into the environment.
OURS = {"DATABASE_URL", "REDIS_URL", "OBJECT_STORE_URL", "PUBLIC_BASE_URL", "DJANGO_SETTINGS_MODULE"}


@pytest.fixture
def printed(tmp_path: Path) -> Iterator[str]:
    """What the service prints until it is ready. It has servers, data and a port of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    kept = {name: value for name, value in os.environ.items() if name not in OURS}
    with subprocess.Popen(
        [sys.executable, "manage.py", "serve", "--demo"],
        cwd=ROOT,
        env={**kept, "VAR_DIR": str(tmp_path / "var"), "PORT": str(port)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            lines: list[str] = []
            for line in process.stdout:
                lines.append(line)
                if "Three commands to try" in line:
                    break
            yield "".join(lines)
        finally:
            process.terminate()
            process.communicate(timeout=60)


def test_the_first_five_minutes(printed: str, browser: Browser, tmp_path: Path) -> None:
    found = re.search(r"Dashboard: (\S+) +(\S+), by a mailed link", printed)
    assert found is not None, printed
    address, email = found.groups()
    with opened_page(browser) as page:
        sign_in_by_mail(page, address, email)
        page.click("text=Accept and go on")

        page.click("main tbody a >> nth=0")
        page.wait_for_selector(".chart[data-drawn]")

        page.click("nav a:has-text('Rules') >> nth=0")
        page.click("text=Edit as JSON")
        edit(page, lambda text: re.sub(r'"ttlSeconds": \d+', '"ttlSeconds": 61', text))
        page.wait_for_selector("text=no findings")
        page.click("text=Keep as a draft")
        page.click("main >> text=Replay >> nth=0")
        page.click("dialog .primary")
        page.wait_for_selector("text=What publishing costs", timeout=120_000)
        # Results expire sooner, so there are fewer hits.
        expect(page.locator("dt:text-is('Hits') + dd")).to_contain_text("fewer")
        page.click("text=the draft")
        page.click("text=Review and publish")
        assert "61" in page.inner_text("dialog td.now >> nth=0")
        page.click("dialog .primary")
        page.wait_for_selector("text=is in force.")

        page.click("nav >> text=SQL")
        page.click("text=Run >> nth=0")
        page.wait_for_selector("[aria-label=Result] tbody tr")
        rows = page.locator("[aria-label=Result] tbody tr").count()
        with page.expect_download() as saved:
            page.click("text=Parquet")
        saved.value.save_as(tmp_path / "rows.parquet")
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == rows > 1
