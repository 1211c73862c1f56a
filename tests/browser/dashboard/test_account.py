"""The page of the signed-in user: its mails, its tokens, its sessions."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from playwright.sync_api import expect

from accounts.models import RefreshToken
from analytics.models import DigestPreference

if TYPE_CHECKING:
    from tests.browser.dashboard.demo import Demo

pytestmark = pytest.mark.browser


def test_digests_come_by_mail_as_often_as_chosen(demo: Demo, home: str, open_as: Callable[..., Any]) -> None:
    with open_as(demo.guest, home, "/account") as dashboard:
        page = dashboard.page
        choice = f"[aria-label='Mails about {demo.name}']"
        assert page.input_value(choice) == "off"
        page.select_option(choice, "weekly")
        page.wait_for_selector(f".notice:has-text('You get a mail every week about {demo.name}.')")
        page.reload()
        page.wait_for_selector(choice)
        assert page.input_value(choice) == "weekly"
        preference = DigestPreference.objects.get(user=demo.guest, tenant_id=UUID(demo.tenant))
        assert preference.frequency == "weekly"
        page.select_option(choice, "off")
        page.wait_for_selector(f".notice:has-text('No more mails about {demo.name}.')")


def test_a_token_is_made_shown_once_and_revoked(
    demo: Demo, home: str, service: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.member, home, "/account") as dashboard:
        page = dashboard.page
        # What a program may ask for is a click away, beside the tokens and in every menu.
        links = page.locator("a:has-text('API and guides')").evaluate_all("all => all.map((it) => it.href)")
        assert links == [f"{service}/docs"] * 2
        page.click("text=New token")
        page.fill("dialog input[name=name]", "for Excel")
        page.check("dialog input[name='logs:query']")
        page.click("dialog .primary")
        token = page.inner_text("dialog [aria-label=Token]")
        assert token.startswith("tas_pat_")
        page.click("dialog >> text=Done")
        row = page.locator("tr:has-text('for Excel')")
        row.wait_for()
        assert row.locator(".badge").all_inner_texts() == ["config:read", "logs:query"]
        row.locator("text=Renew").click()
        page.wait_for_selector("dialog [aria-label=Token]")
        assert page.inner_text("dialog [aria-label=Token]") != token
        page.click("dialog >> text=Done")
        page.wait_for_selector("dialog", state="detached")
        row.locator("text=Revoke").click()
        page.click("dialog .danger")
        page.wait_for_selector("dialog", state="detached")
        dashboard.settle()
        expect(page.locator("tr:has-text('this one')")).to_contain_text("now")
        expect(row).to_have_count(0)


def test_signing_out_everywhere_ends_the_other_sessions_too(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.admin, home) as elsewhere, open_as(demo.admin, home, "/account") as here:
        here.page.click("text=Sign out everywhere")
        here.page.click("dialog .danger")
        here.page.wait_for_selector("text=Mail me a sign-in link")
        assert not RefreshToken.objects.filter(user=demo.admin, revoked_at=None).exists()
        elsewhere.page.reload()
        elsewhere.page.wait_for_selector("text=Mail me a sign-in link")


def test_the_account_keeps_the_tenant_and_a_token_comes_with_a_command_that_works(
    demo: Demo, own_origin: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, own_origin, f"/t/{demo.other}/rules") as dashboard:
        page = dashboard.page
        page.click(".who a")
        page.wait_for_selector("h1:has-text('Your account')")
        assert page.input_value("aside select[name=tenant]") == demo.other
        page.click("text=New token")
        assert page.input_value("dialog select[name=tenant]") == demo.other
        page.fill("dialog input[name=name]", "for curl")
        page.click("dialog .primary")
        command = page.inner_text("dialog [aria-label='A first request']")
        found = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
        assert json.loads(found)["tenantId"] == demo.other
        page.click("dialog >> text=Done")
        page.click("text=New token")
        page.fill("dialog input[name=name]", "for SQL")
        page.check("dialog input[name='logs:query']")
        page.click("dialog .primary")
        command = page.inner_text("dialog [aria-label='A first request']")
        found = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
        counts = {row["cacheStatus"]: row["count_star()"] for row in json.loads(found)["rows"]}
        assert counts["HIT"] > 0
        page.click("dialog >> text=Done")
        page.locator("tr:has-text('for curl')").wait_for()
        # Those of the dashboard are not among them.
        assert page.locator("[aria-label='Personal access tokens'] tr:has-text('Dashboard')").count() == 0


def test_the_palette_leads_to_pages_tenants_and_acts(
    demo: Demo, own_origin: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, own_origin, f"/t/{demo.tenant}/rules") as dashboard:
        page = dashboard.page
        page.keyboard.press("Control+k")
        page.wait_for_selector("dialog.palette")
        entries = page.locator("dialog.palette a")
        page.keyboard.type("purge")
        expect(entries).to_have_count(1)
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/t/{demo.tenant}/invalidate")
        dashboard.settle()
        # A question mark is a letter where one writes.
        page.fill("textarea[name=tables]", "")
        page.keyboard.press("?")
        expect(page.locator("dialog")).to_have_count(0)
        page.focus("#view")
        page.keyboard.press("?")
        page.wait_for_selector("dialog.palette")
        page.keyboard.type("invite")
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog input[name=email]")


def test_an_address_of_an_unknown_tenant_shows_no_menu_of_it(
    demo: Demo, own_origin: str, open_as: Callable[..., Any]
) -> None:
    unknown = "00000000-0000-4000-8000-000000000001"
    with open_as(demo.member, own_origin, f"/t/{unknown}/overview") as dashboard:
        page = dashboard.page
        expect(page.locator("main")).to_contain_text("You have no tenant at this address.")
        expect(page.locator("main")).to_contain_text(demo.member.email)
        assert page.locator("nav[aria-label=Pages] a").all_inner_texts() == ["Tenants", "Your own history"]
        assert not any(unknown in path for path in dashboard.asked)
