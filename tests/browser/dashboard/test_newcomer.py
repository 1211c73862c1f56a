"""A newcomer's first five minutes with the real service, as `make run` starts it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect

from tests.browser.browsing import opened_page
from tests.browser.dashboard.serving import running_service
from tests.browser.dashboard.signing_in import sign_in_by_mail
from tests.browser.dashboard.watching import edit

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


def test_the_first_five_minutes(browser: Browser, tmp_path: Path) -> None:
    with (
        running_service(tmp_path, "--demo", until="Three commands to try") as printed,
        opened_page(browser) as page,
    ):
        found = re.search(r"Dashboard: (\S+) +(\S+), by a mailed link", printed)
        assert found is not None, printed
        address, email = found.groups()
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
        page.click("main a:not(.button)[href*='/drafts/'] >> nth=0")
        # The page of the replay, which offers that too, has been left.
        page.wait_for_selector("h1:text-is('Draft')", state="attached")
        page.click("text=Review and publish")
        assert "61" in page.inner_text("dialog td.now >> nth=0")
        page.click("dialog .primary")
        page.wait_for_selector(".notice:has-text('is in force.')")

        page.click("nav >> text=SQL")
        page.click("main button:text-is('Run')")
        page.wait_for_selector("[aria-label=Result] tbody tr")
        rows = page.locator("[aria-label=Result] tbody tr").count()
        with page.expect_download() as saved:
            page.click("text=Parquet")
        saved.value.save_as(tmp_path / "rows.parquet")
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == rows > 1
