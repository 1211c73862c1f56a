"""Staff open a customer's tenant in the dashboard, write there with a reason, and leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from accounts.models import Event, Membership, RefreshToken, Revision
from rules.models import Ruleset
from tests.browser.staff.tasks import signed_in
from tosapp.publishing import publish

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


def test_a_proof_of_the_second_factor_keeps_the_session_one_of_staff(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    refusal = {"error": "second_factor_required", "message": "Prove it.", "requestId": "x"}
    with signed_in(chromium, service, world) as (page, _):
        page.goto(f"{service}/admin/tenants/{tenant.pk}/open/?to=history?kind=rules%26seq=1")
        page.fill("[name=reason]", "ticket 7")
        page.click("button.button:has-text('Open')")
        page.click("main button:has-text('Restore')")
        page.fill("dialog [name=comment]", "ticket 8")
        page.route("**/restore*", lambda route: route.fulfill(status=403, json=refusal), times=1)
        page.on("dialog", lambda dialog: dialog.accept())
        page.click("dialog .foot button:has-text('Restore')")
        # The page of the admin site asks for the proof, and knows the reason.
        page.wait_for_url("**/open/*proof=1*")
        expect(page.locator("[name=reason]")).to_have_value("ticket 7")
        page.click("button.button:has-text('Open')")
        page.wait_for_selector("text=Done: what you began before.")
        expect(page.locator("aside.staff")).to_contain_text("You look at Warehouse, a customer’s tenant")
        expect(page.locator("aside.staff")).to_contain_text("ticket 7")
        assert page.url.endswith(f"#/t/{tenant.pk}/history?kind=rules&seq=1")
    written = Revision.objects.filter(tenant_id=tenant.pk, kind="rules").latest("seq")
    assert written.summary["comment"] == "ticket 8"
    former, present = RefreshToken.objects.order_by("pk")
    assert (former.is_staff, present.is_staff) == (True, True)
    assert former.revoked_at is not None
    assert present.revoked_at is None


def test_access_to_the_log_is_part_of_opening(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    publish("# Terms", actor="admin@example.org")
    with signed_in(chromium, service, world, viewport={"width": 390, "height": 844}) as (page, _):
        page.goto(f"{service}/admin/tenants/{tenant.pk}/open/?to=sql")
        page.fill("[name=reason]", "ticket 7")
        page.select_option("[name=hours]", "2")
        page.click("button.button:has-text('Open')")
        # The page that was wanted follows the terms.
        page.click("text=Accept and go on")
        expect(page.locator("aside.staff")).to_contain_text("You may read its log until")
        page.wait_for_selector("h1:has-text('SQL')")
    assert Membership.objects.get(user=world.platform_admin).ends_at is not None
