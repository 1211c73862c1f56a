"""Staff open a customer's tenant in the dashboard, write there with a reason, and leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from accounts.models import Event, Membership, RefreshToken, Revision
from rules.models import Ruleset
from tests.browser.staff.tasks import signed_in

if TYPE_CHECKING:
    from accounts.models import Tenant
    from tests import factories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_open_write_and_leave(chromium: str, service: str, world: factories.World, tenant: Tenant) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.find("Wareh")
        clicks.click("text=Open in the dashboard")
        page.fill("[name=reason]", "ticket 7")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.click("button.button:has-text('Open')")
        bar = page.locator("aside.staff")
        expect(bar).to_contain_text(
            "You look at Warehouse, a customer’s tenant, as admin@example.org: ticket 7."
        )
        assert page.url == f"{service}/dashboard/#/t/{tenant.pk}/overview"
        # Neither a token nor the code was in an address that a server sees.
        assert not [url for url in asked if "token=" in url or "code=" in url.partition("#")[0]]
        session = RefreshToken.objects.get()
        assert session.is_staff
        # What names users is not there, and the way to it is.
        expect(page.locator("nav[aria-label=Pages] >> text=SQL")).to_have_count(0)
        expect(bar.locator("text=Read its log, too")).to_be_visible()

        page.goto(f"{service}/dashboard/#/t/{tenant.pk}/history?kind=rules&seq=1")
        page.click("main button:has-text('Restore')")
        reason = page.locator("dialog [name=comment]")
        expect(reason).to_have_value("ticket 7")
        page.click("dialog .foot button:has-text('Restore')")
        page.wait_for_selector(".notice.revision")
        seq = Ruleset.objects.get(pk=tenant.pk).seq
        written = Revision.objects.get(tenant_id=tenant.pk, kind="rules", seq=seq)
        assert (written.user, written.summary["comment"]) == ("admin@example.org", "ticket 7")

        page.click("aside.staff >> text=Leave")
        page.wait_for_url(f"{service}/admin/tenants/{tenant.pk}/")
        assert RefreshToken.objects.get().revoked_at is not None
    assert Event.objects.filter(kind="staff.acted", after__act="dashboard.opened").count() == 1


def test_access_to_the_log_is_part_of_opening(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    with signed_in(chromium, service, world, viewport={"width": 390, "height": 844}) as (page, _):
        page.goto(f"{service}/admin/tenants/{tenant.pk}/open/?to=sql")
        page.fill("[name=reason]", "ticket 7")
        page.select_option("[name=hours]", "2")
        page.click("button.button:has-text('Open')")
        expect(page.locator("aside.staff")).to_contain_text("You may read its log until")
        page.wait_for_selector("h1:has-text('SQL')")
    assert Membership.objects.get(user=world.platform_admin).ends_at is not None
