"""Pages on a phone, in the dark, by keyboard, for screen readers; how much the first view loads."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from axe_playwright_python.sync_playwright import DEFAULT_OPTIONS, Axe
from playwright.sync_api import expect

from analytics.models import ReplayRun
from analytics.replay.execution import run_next
from rules.drafts import create_draft
from tenantadmin.lib.objectstore import default_store
from tests.browser.browsing import faults_of_width, pass_frames
from tests.browser.dashboard.contract_types import MODULES
from tests.browser.dashboard.demo import at_both_origins
from tests.browser.dashboard.pages import dashboard_pages

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route, ViewportSize

    from tests.browser.dashboard.demo import Demo

pytestmark = pytest.mark.browser
PHONE: ViewportSize = {"width": 390, "height": 844}

CONTRAST = {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}


@at_both_origins
def test_every_page_is_accessible_in_light_and_dark_and_fits_every_window(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    run_next(default_store(), tenant_id=UUID(demo.tenant))
    replay = ReplayRun.objects.filter(tenant_id=demo.tenant, state="done")[0]
    # Other tests publish the draft of the replay.
    draft = create_draft(tenant_id=UUID(demo.tenant), document={}, actor=demo.owner.email)
    known = {"tenant": demo.tenant, "draft": draft.pk, "replay": replay.pk}
    pages = dashboard_pages(known)
    # A user who has signed in is sent on from these.
    del pages["signin"], pages["terms"]
    found: dict[str, list[str]] = {}
    cut: dict[str, Any] = {}
    with open_as(demo.owner, home) as dashboard:
        page = dashboard.page

        def check(path: str, options: dict[str, Any]) -> None:
            where = path.replace(demo.tenant, "T")
            for violation in page.evaluate("options => axe.run(options)", options)["violations"]:
                shown = f"{violation['id']}: {violation['nodes'][0]['html'][:150]}"
                found.setdefault(where, []).append(shown)

        # Once: all pages are one document.
        page.evaluate(Axe().axe_script)
        for path in [*pages.values(), f"{pages['explain']}?kind=request"]:
            dashboard.go(path)
            page.wait_for_selector("h1", state="attached")
            check(path, DEFAULT_OPTIONS)
            page.emulate_media(color_scheme="dark")
            check(path, CONTRAST)
            # In a window of 1280, only a table in half of a page has rows that are blocks.
            expect(page.locator(".panel:not(.columns > *) .folded")).to_have_count(0)
            if faults := faults_of_width(page, "#view"):
                cut[path.replace(demo.tenant, "T")] = faults
            page.emulate_media(color_scheme="light")
        page.set_viewport_size(PHONE)
        page.click("[aria-label=Menu]")
        page.click("nav >> text=Statements")
        page.wait_for_selector("h1:has-text('Statements')")
        expect(page.locator("nav[aria-label=Pages]")).to_be_hidden()
    draft.delete()
    assert found == {}
    assert not cut, cut


def tab_to(page: Page, selector: str, *, most: int = 60) -> None:
    """Press Tab until an element that fits has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    pytest.fail(f"Tab does not reach {selector}")


def test_the_keyboard_reaches_what_the_pages_of_the_first_hour_offer(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, home, f"/t/{demo.tenant}/alerts") as dashboard:
        page = dashboard.page
        page.set_viewport_size(PHONE)
        page.emulate_media(color_scheme="dark")
        page.wait_for_selector("h1:has-text('Alerts')")
        page.focus("#view")
        tab_to(page, "button.primary")
        page.keyboard.press("Enter")
        expect(page.locator("dialog input[name=name]")).to_be_focused()
        tab_to(page, "dialog select[name=kind]")
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)

        dashboard.go(f"/t/{demo.tenant}/setup")
        page.wait_for_selector("details.panel")
        page.focus("#view")
        tab_to(page, "#step-token > summary")
        page.keyboard.press("Enter")
        page.wait_for_selector("#step-token input[name=name]")
        tab_to(page, "#step-token input[name=name]")

        dashboard.go(f"/t/{demo.tenant}/traffic?from={demo.last_day}&to={demo.last_day}")
        page.wait_for_selector("details.request")
        page.focus("#view")
        tab_to(page, "details.request > summary")
        page.keyboard.press("Enter")
        expect(page.locator("details.request[open] .facts")).to_be_visible()

        dashboard.go(f"/t/{demo.tenant}/invalidate")
        page.wait_for_selector("textarea[name=tables]")
        page.focus("#view")
        tab_to(page, "textarea[name=tables]")
        tab_to(page, "select[name=rule]")
        # Every link of the menu has its sign.
        signs = "[...document.querySelectorAll('use')].map(it => it.getAttribute('href'))"
        assert page.evaluate(f"{signs}.filter(it => !document.querySelector(it))") == []


def test_the_keyboard_reaches_a_rule(demo: Demo, home: str, open_as: Callable[..., Any]) -> None:
    with open_as(demo.owner, home) as dashboard:
        page = dashboard.page
        names: list[Route] = []

        def hold(route: Route) -> None:
            names.append(route)

        page.route("**/config/tenants/manifest?*", hold)
        page.goto("about:blank")
        with page.expect_request("**/config/tenants/manifest?*"):
            page.goto(f"{home}#/t/{demo.tenant}/overview")
        page.focus("nav[aria-label=Pages] a:has-text('Rules') >> nth=0")
        # The names of tenants come late, and the menu is drawn again: the focus stays.
        names.pop().continue_()
        page.wait_for_selector(f".side option:has-text('{demo.name}')", state="attached")
        page.keyboard.press("Enter")
        page.wait_for_selector(".rule")
        expect(page.locator("#view")).to_be_focused()
        for _ in range(12):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.matches('.rule > summary')"):
                break
        page.keyboard.press("Enter")
        expect(page.locator(".rule[open]")).to_have_count(1)


def test_a_link_that_is_pressed_while_the_menu_is_drawn_again_is_followed(
    demo: Demo, own_origin: str, open_as: Callable[..., Any]
) -> None:
    names: list[Route] = []

    def hold(route: Route) -> None:
        names.append(route)

    with open_as(demo.owner, own_origin) as dashboard:
        page = dashboard.page
        page.route("**/config/tenants/manifest?*", hold, times=1)
        page.goto("about:blank")
        with page.expect_request("**/config/tenants/manifest?*"):
            page.goto(f"{own_origin}#/t/{demo.tenant}/overview")
        page.hover("nav[aria-label=Pages] a:has-text('Rules') >> nth=0")
        page.mouse.down()
        with page.expect_event("requestfinished", lambda it: it == names[0].request):
            names[0].continue_()
        pass_frames(page)
        page.mouse.up()
        page.wait_for_selector(".rule")
        page.wait_for_selector(f".side option:has-text('{demo.name}')", state="attached")


def test_the_whole_menu_is_in_view_and_the_present_page_in_a_low_window(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, home, f"/t/{demo.tenant}/rules") as dashboard:
        page = dashboard.page
        page.set_viewport_size({"width": 1280, "height": 800})
        menu = page.locator("nav[aria-label=Pages]")
        # The menu is drawn again when the names of tenants are there.
        page.wait_for_selector(f".side option:has-text('{demo.name}')", state="attached")
        # There is room for the first steps, which the demo has done.
        menu.evaluate("it => it.prepend(it.querySelector('ul').firstChild.cloneNode(true))")
        assert menu.evaluate("it => it.scrollHeight - it.clientHeight") == 0
        page.set_viewport_size({"width": 1280, "height": 500})
        menu.locator("text=Members").click()
        page.wait_for_selector("h1:has-text('Members')")
        dashboard.settle()
        expect(menu.locator("[aria-current]")).to_have_text("Members")
        expect(menu.locator("[aria-current]")).to_be_in_viewport(ratio=0.9)


def test_the_first_view_is_small(demo: Demo, home: str, open_as: Callable[..., Any]) -> None:
    loaded: list[str] = []
    with open_as(demo.owner, home) as dashboard:
        page = dashboard.page
        # The page before may still ask.
        page.goto("about:blank")
        page.on("request", lambda request: loaded.append(request.url))
        del dashboard.asked[:]
        dashboard.go(f"/t/{demo.tenant}/overview")
        page.wait_for_selector(".chart[data-drawn]")
        page.wait_for_selector(f"aside option:text('{demo.name}')", state="attached")
    asked = [request.replace(demo.tenant, "T").partition("?")[0] for request in dashboard.asked]
    assert asked[:3] == ["GET /users/me", "POST /users/me/tokens", "POST /oauth/token"]
    assert asked[3:5] == ["GET /tenants/T/activity", "GET /tenants/T/timeline"]
    # The names of the other tenants, savings, verdict and what is left to set up come when the page is there.
    later = [
        "GET /config/tenants/manifest",
        *(f"GET /tenants/T/{part}" for part in ("savings", "setup", "verdict")),
    ]
    assert sorted(asked[5:]) == later
    assert len(loaded) == len(set(loaded))
    files = [urlsplit(url).path for url in loaded if "/static/" in url]
    ours = [path.partition("/static/dashboard/")[2] for path in files if "/static/dashboard/" in path]
    # Others: Chart.js alone.
    assert [path for path in files if "/static/dashboard/" not in path] == [
        "/static/unfold/js/chart/chart.js"
    ]
    # As the service sends them.
    assert sum(len(gzip.compress((MODULES / path).read_bytes())) for path in ours) < 80_000
