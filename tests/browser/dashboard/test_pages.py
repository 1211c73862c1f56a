"""The pages of the dashboard, on the service's origin and on another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command

from tests.browser.dashboard.watching import edit

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.browser.dashboard.demo import Demo

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_tenants_and_overview(demo: Demo, home: str, open_as: Callable[..., Any]) -> None:
    month = demo.last_day.isoformat()[:7]
    with open_as(demo.owner, home) as dashboard:
        page = dashboard.page
        assert page.url == f"{home}#/"
        assert page.title() == "Tenants · Dashboard"
        assert page.locator("tbody tr").count() == 2
        del dashboard.asked[:]
        page.click(f"text={demo.name}")
        page.wait_for_selector(".chart[data-drawn]")
        assert [path.replace(demo.tenant, "T").partition("?")[0] for path in dashboard.asked] == [
            "POST /users/me/tokens",
            "POST /oauth/token",
            *sorted([f"GET /tenants/T/summaries/{month.replace('-', '/')}", "GET /tenants/T/timeline"]),
        ]
        tiles = dict(
            zip(page.locator("dt").all_inner_texts(), page.locator("dd").all_inner_texts(), strict=True)
        )
        assert tiles["Hit rate"].endswith("%")
        assert int(tiles["Requests"].replace(",", "")) > 100
        page.click("nav[aria-label='Length of the period'] >> text=Day")
        page.wait_for_url(f"**period={demo.last_day}")
        page.wait_for_selector("text=Requests by hour")
        page.go_back()
        page.wait_for_selector("text=Requests by day")
        del dashboard.asked[:]
        page.reload()
        page.wait_for_selector(".chart[data-drawn]")
        assert len(dashboard.asked) == len(set(dashboard.asked)) == 4


def test_rules_are_edited_with_lint_compared_and_published(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, home, f"/t/{demo.tenant}/rules") as dashboard:
        page = dashboard.page
        rules = page.locator(".rule")
        count = rules.count()
        assert count > 5
        rules.nth(count - 1).locator("summary").click()
        assert rules.nth(count - 1).locator("pre").is_visible()
        page.click("text=Edit")
        page.wait_for_selector(".ace_editor")
        page.wait_for_selector("text=no findings")
        edit(page, lambda text: text.replace('"ttlSeconds"', '"ttlSecond"', 1))
        page.wait_for_selector(".badge:has-text('unknown-property')")
        page.click("text=Review and publish")
        page.wait_for_selector(".notice.error:has-text('Correct the')")
        edit(page, lambda text: text.replace('"ttlSecond"', '"ttlSeconds"', 1).replace("86400", "7200", 1))
        page.wait_for_selector("text=no findings")
        page.click("text=Review and publish")
        assert page.inner_text("dialog td.was") == "86400"
        assert page.inner_text("dialog td.now") == "7200"
        page.click("dialog >> text=Publish >> nth=-1")
        page.wait_for_selector(".notice:has-text('Published.')")
        page.click("main >> text=History")
        page.wait_for_selector("h2:has-text('Revision ')")
        newest = int(page.inner_text(".chosen strong").removeprefix("#"))
        assert page.inner_text("td.now") == "7200"
        page.click(f"#seq-{newest - 1} button")
        page.wait_for_selector(f"h2:has-text('Revision {newest - 1}')")
        page.click("main >> text=Restore")
        page.click("dialog >> text=Restore >> nth=-1")
        page.wait_for_selector(f".chosen:has-text('of #{newest - 1}')")


def test_a_number_of_a_digest_is_what_its_sql_gives(
    demo: Demo, own_origin: str, open_as: Callable[..., Any]
) -> None:
    call_command("digest", "--tenant", demo.tenant, "--day", demo.last_day.isoformat())
    with open_as(demo.owner, own_origin, f"/t/{demo.tenant}/digest") as dashboard:
        page = dashboard.page
        link = page.locator(".prose a").first
        number = link.inner_text()
        link.click()
        page.wait_for_selector(".ace_editor")
        page.click("main >> button:has-text('Run')")
        page.wait_for_selector("[aria-label=Result] td")
        assert int(number.replace(",", "")) > 100
        assert page.inner_text("[aria-label=Result] td >> nth=0") == number
