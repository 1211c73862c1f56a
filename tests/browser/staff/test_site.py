"""Daily tasks of staff across tenants, each with a budget of clicks from Home; keyboard and palette."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from accounts.models import Domain, Membership, User
from logs.models import QueryRun
from tests.browser.staff.tasks import Clicks, signed_in, wait_for_results
from tosapp.publishing import publish, require_active

if TYPE_CHECKING:
    from playwright.sync_api import Route

    from accounts.models import Tenant
    from tests import factories


pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_other_terms_are_published(chromium: str, service: str, world: factories.World) -> None:
    publish("# Terms\n\nBe kind.", actor="admin@example.org")
    User.objects.filter(email="member@example.org").update(tos=require_active().hash)
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.click("#nav-sidebar >> text=Terms of service")
        clicks.click("text=Publish new terms")
        page.fill("[name=markdown]", "# Terms\n\nBe *very* kind.")
        page.wait_for_selector("#preview >> text=1 who acknowledged the active text")
        page.wait_for_selector("#preview .rendered em >> text=very")
        page.fill("[name=reason]", "ticket 3")
        clicks.click("button.button:has-text('Publish')")
        page.wait_for_selector("text=asked to acknowledge it")
        assert clicks.count <= 4
    assert require_active().markdown == "# Terms\n\nBe *very* kind."


def test_no_row_of_home_moves_while_the_totals_load(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    Domain.objects.create(account=world.account, name="acme.example", challenge="tenant-admin=abc")
    with signed_in(chromium, service, world) as (page, _):
        held: list[Route] = []
        page.route("**/?part=totals", lambda route: held.append(route))  # noqa: PLW0108  # Playwright asks for its arguments
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 800})
            page.goto(f"{service}/admin/")
            page.wait_for_selector("[hx-get='?part=without-owner']", state="detached")
            page.wait_for_function("document.fonts.status === 'loaded'")
            row = page.locator("#domains >> text=acme.example")
            before = row.bounding_box()
            held.pop().continue_()
            page.wait_for_selector("#totals .spark")
            assert row.bounding_box() == before


def test_rights_are_reviewed_and_a_person_is_offboarded(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.find("Wareh")
        clicks.open_tab("People")
        page.wait_for_selector("#rights >> text=tenant-admin@example.org")
        assert clicks.count <= 3
        clicks = Clicks(page, service)
        clicks.find_other("owner@example.org", "/admin/people/")
        clicks.click("text=Offboard")
        expect(page.locator("[name=everything]")).to_have_value("tenant-admin@example.org")
        page.fill("[name=reason]", "left the company")
        clicks.click("button.button:has-text('Offboard')")
        page.wait_for_selector("text=owner@example.org is offboarded.")
        assert clicks.count <= 5
    assert not User.objects.get(email="owner@example.org").is_active
    assert Membership.objects.get(user=world.tenant_admin).role == "owner"


def test_plan_domain_and_fqdn(chromium: str, service: str, world: factories.World, tenant: Tenant) -> None:
    domain = Domain.objects.create(account=world.account, name="acme.example", challenge="tenant-admin=abc")
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.find_other("Acme", "/admin/accounts/")
        clicks.click("text=Change plan or owners")
        page.check("[name=plan][value=enterprise]")
        page.fill("[name=reason]", "contract 12")
        clicks.click("button.button:has-text('Save')")
        page.wait_for_selector("text=Saved as revision 1.")
        assert clicks.count <= 4
        clicks = Clicks(page, service)
        clicks.click("#domains >> text=acme.example")
        page.wait_for_selector("[data-copy='tenant-admin=abc']")
        clicks.click("text=Verify by hand")
        page.fill("[name=reason]", "proved by phone")
        clicks.click("button.button:has-text('Verify by hand')")
        page.wait_for_selector("text=acme.example is verified.")
        assert clicks.count <= 4
        clicks = Clicks(page, service)
        clicks.click("a[href='/admin/fqdns/']")
        page.fill("[name=q]", "db.acme.example")
        page.fill("[name=tenant]", "Other")
        clicks.click("button:has-text('Look up')")
        page.wait_for_selector("#found >> text=claimed")
        page.wait_for_selector("#claim .chip >> text=no")
        assert clicks.count <= 4
    domain.refresh_from_db()
    assert domain.verified_at is not None


def test_the_audit_is_filtered_and_kept_as_a_view(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    QueryRun.objects.create(
        tenant_id=tenant.pk,
        email="member@example.org",
        statement="SELECT pg_sleep(9)",
        request_id="r",
        outcome="query_rejected",
        message="The function pg_sleep is not allowed.",
    )
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.click("a[href='/admin/audit/']")
        page.select_option("[name=kind]", "queries")
        clicks.click("button:has-text('Show')")
        page.wait_for_url("**kind=queries**")
        page.wait_for_selector("#timeline >> text=The function pg_sleep is not allowed.")
        assert page.locator("#timeline tbody tr").count() == 1
        assert clicks.count <= 2
        page.fill("[name=name]", "Refused queries")
        clicks.click("text=Save the view")
        page.wait_for_selector("a[aria-current]:has-text('Refused queries')")


def test_by_keyboard_alone(chromium: str, service: str, world: factories.World, tenant: Tenant) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{service}/admin/#content")
        page.keyboard.press("Control+k")
        page.wait_for_selector(".palette input:focus")
        page.keyboard.type("Unknown")
        page.wait_for_selector(".palette >> text=Nothing matches “Unknown”")
        # There is nothing to open.
        page.keyboard.press("Enter")
        # What follows comes at once, before the browser takes the focus from the hidden field.
        page.keyboard.press("Escape")
        page.keyboard.press("Control+k")
        page.keyboard.type("Unknown")
        page.wait_for_selector(".palette >> text=Nothing matches “Unknown”")
        page.keyboard.press("Escape")
        expect(page.locator(".palette")).to_have_count(0)
        page.keyboard.press("Control+k")
        page.keyboard.type("Warehouse")
        wait_for_results(page, "Warehouse")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{service}/admin/tenants/{tenant.pk}/")
        page.focus(".tabs >> text=Builds")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{service}/admin/tenants/{tenant.pk}/builds/")
        assert clicks.count == 0


def test_a_failed_part_shows_an_error(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        page.route("**/admin/search/**", lambda route: route.fulfill(status=404))
        clicks.search("Wareh")
        page.wait_for_selector(".palette >> text=This could not be loaded.")
        page.unroute("**/admin/search/**")
        page.keyboard.type("ouse")
        page.wait_for_selector(".palette a[href*='/admin/tenants/']")
        expect(page.locator("text=This could not be loaded.")).to_have_count(0)
        page.route("**/?part=servers", lambda route: route.fulfill(status=404))
        page.goto(f"{service}{reverse('admin:system')}")
        page.wait_for_selector("#servers >> text=This could not be loaded.")


def test_enter_opens_the_first_result(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    with signed_in(chromium, service, world) as (page, _):
        # The first letter may come at once.
        page.click("text=Go to…")
        page.keyboard.type("Other")
        wait_for_results(page, "Other")
        page.keyboard.press("Control+a")
        page.keyboard.type("Warehouse")
        # The results are still those of the other words.
        page.keyboard.press("Enter")
        page.wait_for_url(f"{service}/admin/tenants/{tenant.pk}/")
