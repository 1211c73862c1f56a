"""Pages on a phone, in the dark, by keyboard, for screen readers; how much the first view loads."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.dashboard.contract_types import MODULES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.browser.dashboard.demo import Demo

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PAGES = (
    *("overview", "statements", "reports", "rules", "rules/edit", "drafts", "history", "sql", "explain"),
    *("explain?kind=request", "config", "members", "digest", "recommendations"),
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(scheme: str, demo: Demo, own_origin: str, open_as: Callable[..., Any]) -> None:
    found: dict[str, list[str]] = {}
    with open_as(demo.owner, own_origin, color_scheme=scheme) as dashboard:
        for path in ["/", "/account", *(f"/t/{demo.tenant}/{page}" for page in PAGES)]:
            dashboard.go(path)
            dashboard.page.wait_for_selector("h1")
            violations = Axe().run(dashboard.page).response["violations"]
            if violations:
                found[path.replace(demo.tenant, "T")] = [
                    f"{it['id']}: {it['nodes'][0]['html'][:150]}" for it in violations
                ]
    assert found == {}


def test_a_phone_shows_every_page_without_scrolling_sideways(
    demo: Demo, own_origin: str, open_as: Callable[..., Any]
) -> None:
    wide: list[str] = []
    with open_as(demo.owner, own_origin, viewport={"width": 390, "height": 844}) as dashboard:
        page = dashboard.page
        for path in ["/", "/account", *(f"/t/{demo.tenant}/{name}" for name in PAGES)]:
            dashboard.go(path)
            page.wait_for_selector("h1")
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                wide.append(path)
        page.click("[aria-label=Menu]")
        page.click("nav >> text=Statements")
        page.wait_for_selector("h1:has-text('Statements')")
        assert not page.is_visible("nav[aria-label=Pages]")
    assert wide == []


def test_the_keyboard_reaches_a_rule(demo: Demo, own_origin: str, open_as: Callable[..., Any]) -> None:
    with open_as(demo.owner, own_origin, f"/t/{demo.tenant}/overview") as dashboard:
        page = dashboard.page
        page.focus("nav[aria-label=Pages] a:has-text('Rules') >> nth=0")
        page.keyboard.press("Enter")
        page.wait_for_selector(".rule")
        assert page.evaluate("document.activeElement.id") == "view"
        for _ in range(12):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.matches('.rule > summary')"):
                break
        page.keyboard.press("Enter")
        assert page.locator(".rule[open]").count() == 1


def test_the_first_view_is_small(demo: Demo, own_origin: str, open_as: Callable[..., Any]) -> None:
    loaded: list[str] = []
    with open_as(demo.owner, own_origin) as dashboard:
        page = dashboard.page
        page.on("request", lambda request: loaded.append(request.url))
        del dashboard.asked[:]
        dashboard.page.goto("about:blank")
        dashboard.go(f"/t/{demo.tenant}/overview")
        page.wait_for_selector(".chart[data-drawn]")
    assert len(dashboard.asked) <= 6
    files = [urlsplit(url).path for url in loaded if "/static/" in url]
    assert len(loaded) == len(set(loaded))
    ours = [path.partition("/static/dashboard/")[2] for path in files if "/static/dashboard/" in path]
    # Others: Chart.js alone.
    assert [path for path in files if "/static/dashboard/" not in path] == [
        "/static/unfold/js/chart/chart.js"
    ]
    # As the service sends them.
    assert sum(len(gzip.compress((MODULES / path).read_bytes())) for path in ours) < 60_000
