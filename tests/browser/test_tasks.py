"""The daily tasks of staff in a browser, each with a budget of clicks from Home.

`browsing` fails if a page reports an error, such as a violation of its content policy.
"""

from __future__ import annotations

import datetime as dt
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.core.cache import cache
from django.test import Client

from accounts.models import Fqdn
from analytics.models import DayRollup, TenantHealth
from logs.models import Partition, QuarantinedEntry
from rules.models import Marker, Ruleset
from rules.write import write_ruleset
from tenantadmin.core.timestamps import now
from tests import factories
from tests.browser.browsing import asked_hosts, browsing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from accounts.models import Tenant

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
RULE: dict[str, Any] = {
    "id": "orders",
    "conditions": {"tables": {"containsAny": ["sales.orders"]}, "isReadOnly": True},
    "ttlSeconds": 3600,
}


class Clicks:
    """Clicks of one task."""

    def __init__(self, page: Page, service: str) -> None:
        self.page, self.count = page, 0
        page.goto(f"{service}/admin/")

    def click(self, selector: str) -> None:
        self.count += 1
        self.page.click(selector)

    def find(self, said: str) -> None:
        """Open the palette and the first tenant that it finds."""
        self.click("text=Search apps and models")
        self.page.locator("#search-input-command").press_sequentially(said)
        self.click("#command-results a[href*='/admin/tenants/']")
        self.page.wait_for_selector("text=Hits, misses and hit rate by day")

    def open_tab(self, name: str) -> None:
        self.click(f".tabs >> text={name}")


@pytest.fixture
def world(service: str) -> factories.World:
    cache.clear()
    return factories.make_world()


@pytest.fixture
def tenant(world: factories.World) -> Tenant:
    """A tenant whose hit rate fell after a change of its rules, and with an entry in quarantine."""
    tenant = world.tenant
    for ttl in (3600, 1):
        rule = {**RULE, "ttlSeconds": ttl}
        write_ruleset(tenant_id=tenant.pk, document={"rules": [rule]}, actor="owner@example.org")
    Fqdn.objects.create(name="db.acme.example", tenant_id=tenant.pk)
    today = now().date()
    for age in range(10):
        DayRollup.objects.create(
            tenant_id=tenant.pk,
            day=today - dt.timedelta(days=age),
            build="b",
            version=1,
            files={},
            bytes=1,
            hits=900 - 80 * (10 - age),
            misses=100 + 80 * (10 - age),
            warehouse_ms=1000,
        )
    TenantHealth.objects.create(
        tenant_id=tenant.pk,
        last_day=today,
        rate_7=0.5,
        rate_28=0.7,
        drop=0.2,
        requests_7=7000,
        quarantined=1,
    )
    Partition.objects.create(
        tenant_id=tenant.pk,
        day=today,
        listing_digest="d",
        build="b",
        file="",
        rows=0,
        bytes=1,
        objects_read=1,
        duplicates=0,
        quarantined=1,
    )
    QuarantinedEntry.objects.create(tenant_id=tenant.pk, day=today, key="k", position=0, reason="not JSON")
    return tenant


@contextmanager
def signed_in(
    chromium: str, service: str, world: factories.World, **media: Any
) -> Iterator[tuple[Page, Clicks]]:
    """Open Home as a platform admin; fail at the end if a page asked another host."""
    client = Client()
    client.force_login(world.platform_admin)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    with browsing(chromium) as page:
        page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": service}])
        if size := media.pop("viewport", None):
            page.set_viewport_size(size)
        page.emulate_media(**media)
        hosts = asked_hosts(page)
        yield page, Clicks(page, service)
        assert hosts == {service.removeprefix("http://")}


@pytest.mark.parametrize("said", ["Wareh", "db.acme.example", "member@example.org"])
def test_find_a_tenant_and_see_how_it_does(
    chromium: str, service: str, world: factories.World, tenant: Tenant, said: str
) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.find(said)
        assert clicks.count <= 2
        assert page.url == f"{service}/admin/tenants/{tenant.pk}/"
        assert page.inner_text(".figure .value") == "46.0 %"
        assert page.evaluate("Chart.getChart('days').data.labels.length") == 28


def test_stale_data_is_invalidated(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.find("Wareh")
        clicks.open_tab("Markers")
        clicks.click("text=Show what it would end")
        page.wait_for_selector("#blast >> text=Live results")
        assert clicks.count <= 4
        page.fill("[name=reason]", "backfill, ticket 5")
        clicks.click("button.button:has-text('Invalidate')")
        page.wait_for_selector("text=Invalidated orders.")
        page.wait_for_selector(".chip >> text=active")
    assert Marker.objects.get().metadata == {"reason": "backfill, ticket 5"}


def test_the_cause_of_a_fallen_hit_rate_is_restored(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.click("#drops a")
        clicks.click("text=rules 2: update by owner@example.org")
        page.wait_for_selector("#compared .added >> text=ttlSeconds")
        clicks.click("text=Restore 1")
        page.wait_for_selector("text=The warm cache is lost.")
        page.fill("[name=reason]", "the hit rate fell")
        clicks.click("button.button:has-text('Restore')")
        page.wait_for_selector("text=Restored revision 1 as revision 3.")
        assert clicks.count <= 6
    assert Ruleset.objects.get(pk=tenant.pk).rules[0]["ttlSeconds"] == 3600


def test_a_rule_is_edited_with_lint_as_one_types(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.find("Wareh")
        clicks.open_tab("Rules")
        page.wait_for_selector("#check >> text=Difference from the live rules")
        edit = "text => document.querySelector('.django-ace-widget').editor.session.setValue(text)"
        page.evaluate(edit, '[\n  {"id": "orders", "conditions": {"isReadOnly": true}, "ttlSeconds": -1}\n]')
        page.wait_for_selector("#check >> text=line 2")
        page.wait_for_selector(".ace_gutter-cell.ace_error, .ace_gutter-cell .ace_error")
        page.evaluate(edit, '[\n  {"id": "orders", "conditions": {"isReadOnly": true}, "ttlSeconds": 90}\n]')
        page.wait_for_selector("#check .added >> text=90")
        page.fill("[name=reason]", "shorter")
        clicks.click("button.button:has-text('Save')")
        page.wait_for_selector("text=Saved as revision 3.")
        assert clicks.count <= 4
    assert Ruleset.objects.get(pk=tenant.pk).rules[0]["ttlSeconds"] == 90


def test_a_quarantined_day_is_built_again(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.click("#quarantine a")
        clicks.click("text=Try again")
        assert page.input_value("[name=first]") == now().date().isoformat()
        page.fill("[name=reason]", "mended at the source")
        clicks.click("button.button:has-text('Build again')")
        page.wait_for_selector("text=1 day will be built again.")
        assert clicks.count <= 3
    assert Partition.objects.get().listing_digest == ""


def test_by_keyboard_alone(chromium: str, service: str, world: factories.World, tenant: Tenant) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        page.keyboard.press("Control+k")
        page.wait_for_selector("#search-input-command:focus")
        page.keyboard.type("Warehouse")
        page.wait_for_selector("#command-results a[href*='/admin/tenants/']")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{service}/admin/tenants/{tenant.pk}/")
        page.focus(".tabs >> text=Rules")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{service}/admin/tenants/{tenant.pk}/rules/")
        assert clicks.count == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_window_in_both_color_schemes(
    chromium: str, service: str, world: factories.World, tenant: Tenant, scheme: str
) -> None:
    size = {"width": 390, "height": 844}
    with signed_in(chromium, service, world, viewport=size, color_scheme=scheme) as (page, _):
        for path in ("", "rules/", "history/?to=2", "markers/", "builds/", "people/", "config/"):
            page.goto(f"{service}/admin/tenants/{tenant.pk}/{path}")
            page.wait_for_selector(".tabs")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
            is_dark = page.evaluate("document.documentElement.classList.contains('dark')")
            assert is_dark == (scheme == "dark")
        page.goto(f"{service}/admin/")
        page.wait_for_selector("#without-owner >> text=Every tenant")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
