"""The page of the signed-in user: its mails, its tokens, its sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from accounts.models import RefreshToken
from analytics.models import DigestPreference

if TYPE_CHECKING:
    from collections.abc import Callable

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


def test_a_token_is_made_shown_once_and_revoked(demo: Demo, home: str, open_as: Callable[..., Any]) -> None:
    with open_as(demo.member, home, "/account") as dashboard:
        page = dashboard.page
        page.click("text=New token")
        page.fill("dialog input[name=name]", "for Excel")
        page.check("dialog input[name='logs:query']")
        page.click("dialog .primary")
        token = page.inner_text("dialog .token")
        assert token.startswith("tas_pat_")
        page.click("dialog >> text=Close")
        row = page.locator("tr:has-text('for Excel')")
        row.wait_for()
        assert row.locator(".badge").all_inner_texts() == ["config:read", "logs:query"]
        row.locator("text=Renew").click()
        page.wait_for_selector("dialog .token")
        assert page.inner_text("dialog .token") != token
        page.click("dialog >> text=Close")
        page.wait_for_selector("dialog", state="detached")
        row.locator("text=Revoke").click()
        page.click("dialog .danger")
        page.wait_for_selector("tr:has-text('this one')")
        row.wait_for(state="detached")


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
