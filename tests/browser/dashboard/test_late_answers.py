"""Answers that come late: after the page was left, after another was asked for, or under the user's hands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from playwright.sync_api import expect

from analytics.models import DigestPreference, Mining
from rules.models import RuleDraft, Ruleset
from rules.write import restore_ruleset, write_ruleset
from tenantadmin.lib.core.timestamps import now
from tests.browser.browsing import pass_frames

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

    from tests.browser.dashboard.demo import Demo
    from tests.browser.dashboard.watching import Watched

pytestmark = pytest.mark.browser


@contextmanager
def held(page: Page, pattern: str) -> Iterator[list[Route]]:
    """Hold back the answers to requests that fit. At the end let them go, and wait for the page."""
    found: list[Route] = []
    is_over = False

    def hold(route: Route) -> None:
        if is_over:
            route.continue_()
        else:
            found.append(route)

    page.route(pattern, hold)
    yield found
    is_over = True
    for route in found:
        route.continue_()
        # There is none if the page that asked was left.
        if answer := route.request.response():
            answer.finished()
    page.wait_for_selector("html:not([data-asks])", state="attached")
    pass_frames(page)
    page.unroute(pattern)


def leave(dashboard: Watched) -> None:
    page = dashboard.page
    page.click("nav >> text=Savings")
    page.wait_for_selector("h1:has-text('Savings')")


def test_a_page_that_was_left_changes_nothing(
    demo: Demo, own_origin: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, own_origin, f"/t/{demo.tenant}/overview") as dashboard:
        page = dashboard.page
        for late, address in (
            ("**/rules/history", "history"),
            ("**/access-requests", "members?new=1"),
            ("**/pages/history.js", "history"),
        ):
            with held(page, late):
                with page.expect_request(late):
                    page.evaluate("hash => { location.hash = hash; }", f"#/t/{demo.tenant}/{address}")
                leave(dashboard)
            assert page.url == f"{own_origin}#/t/{demo.tenant}/savings"
            assert page.title() == "Savings · tenantadmin"
            expect(page.locator("dialog")).to_have_count(0)
            page.reload()
            dashboard.settle()
        dashboard.go(f"/t/{demo.tenant}/invalidate")
        with held(page, "**/invalidations/preview"):
            with page.expect_request("**/invalidations/preview"):
                page.click("section:has-text('By rule') >> text=Preview")
            leave(dashboard)
        expect(page.locator("dialog")).to_have_count(0)


def test_the_newer_of_two_answers_stays(demo: Demo, own_origin: str, open_as: Callable[..., Any]) -> None:
    tenant, before = UUID(demo.tenant), Ruleset.objects.get(tenant_id=demo.tenant)
    write_ruleset(tenant_id=tenant, document={"rules": before.rules[1:]}, actor=demo.owner.email)
    restore_ruleset(tenant_id=tenant, seq=before.seq, actor=demo.owner.email)
    with open_as(demo.owner, own_origin, f"/t/{tenant}/history?seq={before.seq + 1}") as dashboard:
        page = dashboard.page
        against = page.locator("select[aria-label='Compare with']")
        shown = page.locator("section:has(select) .diff")
        own = shown.inner_text()
        with held(page, "**/rules/history/diff?*") as asked:
            with page.expect_request("**/rules/history/diff?*"):
                against.select_option(str(before.seq + 2))
            against.select_option("")
            expect(shown).to_have_text(own, use_inner_text=True)
            assert len(asked) == 1
        expect(shown).to_have_text(own, use_inner_text=True)


def test_choices_are_saved_one_after_the_other(
    demo: Demo, own_origin: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.member, own_origin, "/account") as dashboard:
        page = dashboard.page
        menu = page.locator(f"select[aria-label='Mails about {demo.name}']")
        with held(page, "**/digests/*") as asked:
            with page.expect_request("**/digests/*"):
                menu.select_option("daily")
            menu.select_option("weekly")
            assert len(asked) == 1
        page.wait_for_selector(".notice:has-text('every week')")
        # The first of two choices fails: the second is saved all the same.
        menu.select_option("off")
        page.wait_for_selector(".notice:has-text('No more mails')")
        page.route("**/digests/*", lambda route: route.fulfill(status=400, json={}), times=1)
        with page.expect_response(lambda it: "/digests/" in it.url and it.ok):
            menu.evaluate(
                """(menu) => ["daily", "weekly"].forEach((wanted) => {
                     menu.value = wanted;
                     menu.dispatchEvent(new Event("change"));
                   })"""
            )
        expect(menu).to_have_value("weekly")
    preference = DigestPreference.objects.get(user=demo.member, tenant_id=demo.tenant)
    assert preference.frequency == "weekly"
    preference.delete()


def test_what_comes_late_moves_neither_focus_nor_page(
    demo: Demo, own_origin: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, own_origin) as dashboard:
        page = dashboard.page
        with held(page, "**/tenants/weeks*"):
            with page.expect_request("**/tenants/weeks*"):
                page.reload()
            page.focus(f"main a:has-text('{demo.name}')")
        expect(page.locator(f"tr:has-text('{demo.name}')")).to_contain_text("%")
        expect(page.locator(f"main a:has-text('{demo.name}')")).to_be_focused()
        names = "**/config/tenants/manifest?*"
        with held(page, names):
            page.evaluate("hash => { location.hash = hash; }", f"#/t/{demo.tenant}/overview")
            with page.expect_request(names):
                page.reload()
            page.focus("select[name=tenant]")
        expect(page.locator("select[name=tenant] option")).to_have_count(3)
        expect(page.locator("select[name=tenant]")).to_be_focused()
        # The page needs no names.
        page.route(names, lambda route: route.fulfill(status=400, json={}))
        with page.expect_response(names):
            page.reload()
        expect(page.locator("h1")).to_have_text("Overview")
        # The list of pages is asked for twice before it is there.
        with held(page, "**/palette.js"):
            with page.expect_request("**/palette.js"):
                page.keyboard.press("Control+k")
            page.keyboard.press("Control+k")
        expect(page.locator("dialog")).to_have_count(1)


def test_a_token_that_comes_after_signing_out_is_dropped(
    demo: Demo, own_origin: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, own_origin, "/account") as dashboard:
        page = dashboard.page

        def sign_out(route: Route) -> None:
            answer = route.fetch()
            page.click("aside >> text=Sign out")
            page.wait_for_selector("text=You are signed out.")
            route.fulfill(response=answer)

        page.route("**/oauth/token", sign_out, times=1)
        page.clock.set_fixed_time(now() + timedelta(hours=1))
        page.click("text=Save")
        page.wait_for_selector("text=You are signed out.")
        dashboard.settle()
        assert page.evaluate("Object.keys(sessionStorage)") == []
        # What it was for was not done.
        expect(page.locator(".notice.error")).to_contain_text("Your session has ended: sign in again.")


def test_an_act_that_ends_late_does_not_take_the_user_back(
    demo: Demo, own_origin: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, own_origin, f"/t/{demo.tenant}/drafts") as dashboard:
        page = dashboard.page
        with held(page, "**/rules/drafts"):
            with page.expect_request("**/rules/drafts"):
                page.click("text=New draft")
            leave(dashboard)
        notice = page.locator(".notice:has-text('What you began is done.')")
        expect(notice).to_be_visible()
        assert page.url == f"{own_origin}#/t/{demo.tenant}/savings"
        notice.locator("text=See it").click()
        page.wait_for_url("**/drafts/*")
        # A refusal is told too.
        asked: list[Route] = []
        page.click("main >> text=Replay >> nth=0")
        page.wait_for_selector("dialog")
        page.route("**/replays", lambda route: asked.append(route), times=1)  # noqa: PLW0108  # not a builtin
        with page.expect_request("**/replays"):
            page.click("dialog >> text=Replay >> nth=-1")
        page.go_back()
        page.wait_for_selector("h1:has-text('Savings')")
        asked[0].fulfill(status=400, json={"error": "bad_request", "message": "Not now."})
        expect(page.locator(".notice.error")).to_contain_text("Not now.")
        assert page.url == f"{own_origin}#/t/{demo.tenant}/savings"
    RuleDraft.objects.filter(tenant_id=demo.tenant, created_by=demo.owner.email, name="").delete()


def test_the_focus_stays_on_the_same_of_buttons_that_are_alike(
    demo: Demo, own_origin: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, own_origin) as dashboard:
        found = dashboard.page.evaluate(
            """async () => {
                 const { fill, h, refill } = await import("/static/dashboard/dom.js");
                 const box = document.body.appendChild(h("div"));
                 const after = (before, at, now) => {
                   fill(box, before.map((text) => h("button", text)));
                   box.children[at].focus();
                   refill(box, now.map((text) => h("button", text)));
                   return [...box.children].indexOf(document.activeElement);
                 };
                 return [
                   after(["Delete", "Delete"], 1, ["Delete", "Delete"]),
                   after(["Delete", "Delete"], 1, ["Delete", "Delete", "Delete"]),
                   after(["Cancel"], 0, ["Publish"]),
                   after(["A", "B"], 1, ["C", "A", "B"]),
                 ];
               }"""
        )
        assert found == [1, -1, -1, 2]


def test_the_recommendations_stay_while_a_search_goes_on(
    demo: Demo, own_origin: str, open_as: Callable[..., Any]
) -> None:
    searches = Mining.objects.filter(tenant_id=demo.tenant)
    searches.update(state="running", progress=0.25)
    with open_as(demo.owner, own_origin) as dashboard:
        page = dashboard.page
        page.clock.install()
        dashboard.go(f"/t/{demo.tenant}/recommendations")
        head = page.locator("h1")
        head.evaluate("it => { it.id = 'first'; }")
        searches.update(progress=0.5)
        page.clock.run_for(2000)
        expect(page.locator("main .badge >> nth=0")).to_have_text("searching, 50.0%")
        expect(head).to_have_id("first")
        searches.update(state="done")
        page.clock.run_for(2000)
        expect(page.locator("main .button:text('Search now')")).to_be_visible()
    searches.update(state="queued", progress=0)
