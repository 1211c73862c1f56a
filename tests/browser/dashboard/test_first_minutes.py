"""From the sign-in to a Parquet file, and how a session begins and ends."""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow.parquet as pq
import pytest
from django.db import connection

from accounts.models import Membership, PersonalAccessToken, RefreshToken
from analytics.replay.execution import run_next
from tenantadmin.conf.kinds import PRIVATE_FILES
from tenantadmin.objectstore import default_store
from tests import factories
from tests.browser.dashboard.watching import edit, watched_dashboard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

    from tests.browser.dashboard.demo import Demo

pytestmark = pytest.mark.browser


@contextmanager
def running_replays(tenant: str) -> Iterator[None]:
    """Run the replays of a tenant, as a worker does, until the block ends."""
    is_over = threading.Event()

    def work() -> None:
        while not is_over.wait(0.2):
            run_next(default_store(), tenant_id=UUID(tenant))
        connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        is_over.set()
        worker.join()


def newest_link(folder: str) -> str:
    newest = max(Path(folder).iterdir(), key=lambda path: path.stat().st_mtime)
    found = re.search(r"http\S+verify\S+", newest.read_text())
    assert found is not None
    return found[0]


def test_from_the_sign_in_to_a_parquet_file(
    demo: Demo, browser: Browser, service: str, other_origin: str, settings: Any, tmp_path: Path
) -> None:
    settings.EMAIL_BACKEND, settings.EMAIL_FILE_PATH = PRIVATE_FILES, str(tmp_path / "mail")
    home = other_origin
    newcomer = factories.make_user("newcomer@example.org")
    Membership.objects.create(user=newcomer, tenant_id=demo.tenant, role="owner")
    with watched_dashboard(browser, home=home, api=service) as dashboard, running_replays(demo.tenant):
        page = dashboard.page
        page.goto(home)
        page.fill("input[name=email]", newcomer.email)
        page.click("text=Mail me a sign-in link")
        page.wait_for_selector("text=Check your mail.")
        page.goto(newest_link(settings.EMAIL_FILE_PATH))
        page.click("button")
        page.wait_for_selector("text=Accept and go on")
        assert page.url == f"{home}#/terms"
        page.click("text=Accept and go on")

        page.click(f"text={demo.name}")
        page.wait_for_selector(".chart[data-drawn]")

        page.click("nav >> text=Drafts and replay")
        page.click("text=New draft")
        edit(page, lambda text: re.sub(r'"ttlSeconds": \d+', '"ttlSeconds": 601', text, count=1))
        page.click("main >> text=Replay >> nth=0")
        page.fill("dialog input[name=from]", demo.last_day.isoformat())
        page.fill("dialog input[name=to]", demo.last_day.isoformat())
        page.click("dialog .primary")
        page.wait_for_selector("text=Warehouse time saved", timeout=60_000)
        assert page.locator("[aria-label='By rule'] tbody tr").count() > 5
        page.click("text=the draft")
        page.click("text=Review and publish")
        page.wait_for_selector("dialog td.now")
        assert "601" in page.locator("dialog td.now").all_inner_texts()
        page.click("dialog .primary")
        page.wait_for_selector("text=The draft is gone.")

        page.click("nav >> text=SQL")
        page.click("text=Run >> nth=0")
        page.wait_for_selector("[aria-label=Result] tbody tr")
        rows = page.locator("[aria-label=Result] tbody tr").count()
        with page.expect_download() as saved:
            page.click("text=Parquet")
        saved.value.save_as(tmp_path / "rows.parquet")
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == rows > 1


def test_signing_out_ends_the_session_and_its_token(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, home, f"/t/{demo.tenant}/overview") as dashboard:
        page = dashboard.page
        page.wait_for_selector(".chart[data-drawn]")
        assert "token" not in page.url
        page.click("text=Sign out")
        page.wait_for_selector("text=Mail me a sign-in link")
        assert page.evaluate("Object.keys(sessionStorage)") == []
        page.wait_for_load_state("networkidle")
        page.goto(f"{home}#/t/{demo.tenant}/rules")
        page.wait_for_selector("text=Mail me a sign-in link")
        assert page.url.endswith(f"#/signin?to=%2Ft%2F{demo.tenant}%2Frules")
    assert not PersonalAccessToken.objects.filter(name__startswith="Dashboard", revoked_at=None).exists()
    assert RefreshToken.objects.filter(user=demo.owner).latest("pk").revoked_at is not None


def test_an_access_token_is_renewed_before_it_expires(
    demo: Demo, own_origin: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, own_origin) as dashboard:
        page = dashboard.page
        page.evaluate(
            "() => { const key = 'dashboard.session'; const held = JSON.parse(sessionStorage.getItem(key));"
            " sessionStorage.setItem(key, JSON.stringify({...held, expiresAt: Date.now() + 1000})); }"
        )
        del dashboard.asked[:]
        page.reload()
        page.wait_for_selector("tbody tr")
        assert dashboard.asked == ["POST /oauth/token", "GET /users/me", "GET /config/tenants/manifest"]


def test_an_access_token_that_ends_in_the_middle_is_renewed(
    demo: Demo, own_origin: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, own_origin) as dashboard:
        page = dashboard.page
        page.evaluate(
            "() => { const key = 'dashboard.session'; const held = JSON.parse(sessionStorage.getItem(key));"
            " sessionStorage.setItem(key, JSON.stringify({...held, access: held.access.slice(0, -2)})); }"
        )
        del dashboard.asked[:]
        page.reload()
        page.wait_for_selector("tbody tr")
        both = ["GET /users/me", "GET /config/tenants/manifest"]
        # The two that are refused share one new token.
        assert dashboard.asked[:3] == [*both, "POST /oauth/token"]
        assert sorted(dashboard.asked[3:]) == sorted(both)


def test_a_failure_has_one_sentence_and_the_request(
    demo: Demo, own_origin: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, own_origin, f"/t/{demo.tenant}/replays/{demo.tenant}") as dashboard:
        alert = dashboard.page.locator("[role=alert]")
        alert.wait_for()
        assert re.search(r"^[A-Z].*\.\n+Request [A-Za-z0-9]+\n+Try again$", alert.inner_text())


def test_a_busy_service_is_asked_again(demo: Demo, own_origin: str, open_as: Callable[..., Any]) -> None:
    with open_as(demo.owner, own_origin) as dashboard:
        page = dashboard.page
        page.evaluate(
            "() => { const real = fetch; const refusals = [429, 503]; globalThis.refusals = refusals;"
            " globalThis.fetch = (...asked) => refusals.length"
            " ? Promise.resolve(new Response('', {status: refusals.shift(), headers: {'Retry-After': '1'}}))"
            " : real(...asked); }"
        )
        dashboard.go(f"/t/{demo.tenant}/history")
        page.wait_for_selector("h2:has-text('Revision ')")
        assert page.evaluate("refusals") == []
        assert page.locator("[role=alert]").count() == 0
