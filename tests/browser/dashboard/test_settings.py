"""The configuration in units and fields, and what is new in the terms."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec
import pytest
from playwright.sync_api import expect

from accounts.models import Tenant
from accounts.serializers.tenants import parse_config
from accounts.signin.flow import Device, Identity, complete_sign_in
from accounts.tenants.config import read_config, write_config
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.browser.dashboard.signing_in import sign_in
from tests.browser.dashboard.watching import watched_dashboard
from tosapp.models import Acknowledgement
from tosapp.publishing import publish, require_active

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.browser.dashboard.demo import Demo

pytestmark = pytest.mark.browser


def test_times_sizes_and_prices_are_written_in_fields(
    demo: Demo, own_origin: str, open_as: Callable[..., Any]
) -> None:
    owner = factories.make_user("settings@elsewhere.example")
    account = factories.make_account("Settings", owners=[owner])
    tenant = factories.make_tenant(account, "Settings", owner=owner)
    with open_as(owner, own_origin, f"/t/{tenant.pk}/config") as dashboard:
        page = dashboard.page
        expect(page.locator("main")).to_contain_text("No request yet.")
        page.fill("[name=ttlSeconds]", "1.5")
        page.select_option("[name=ttlSecondsUnit]", label="h")
        page.fill("[name=maxEntryBytes]", "2")
        page.select_option("[name=adapterType]", "snowflake")
        page.fill("[name=serverHostname]", "wh.example.com")
        page.click("text=Add a price")
        page.fill("[name=from]", "2026-01-01")
        page.fill("[name=perHour]", "three")
        page.click("header >> text=Save")
        # The refusal names the field, which has the focus.
        expect(page.locator(".notice.error")).to_contain_text("An hour costs: ")
        expect(page.locator("[name=perHour]")).to_be_focused()
        page.fill("[name=perHour]", "3.00")
        page.click("header >> text=Save")
        page.wait_for_selector(".notice:has-text('Saved.')")
        dashboard.settle()
        shown = [
            page.input_value(f"[name={name}]") for name in ("ttlSeconds", "autoSuspendSeconds", "perHour")
        ]
        assert shown == ["90", "10", "3.00"]
    document = read_config(tenant.pk).document
    assert document["defaults"] == {"cacheEnabled": True, "ttlSeconds": 5400, "maxEntryBytes": 2_000_000}
    assert document["warehouse"]["pricing"] == [
        {
            "from": "2026-01-01",
            "currency": "USD",
            "perHour": "3.00",
            "billing": "suspending",
            "autoSuspendSeconds": 600,
            "minimumSeconds": 60,
        }
    ]
    Tenant.objects.filter(pk=tenant.pk).delete()
    account.delete()


def test_a_configuration_that_another_user_saved_first_shows_both_changes(
    demo: Demo, own_origin: str, open_as: Callable[..., Any]
) -> None:
    owner = factories.make_user("both@elsewhere.example")
    account = factories.make_account("Both", owners=[owner])
    tenant = factories.make_tenant(account, "Both", owner=owner)

    def write(**changes: Any) -> None:
        stored = read_config(tenant.pk)
        write_config(
            tenant_id=tenant.pk,
            document={**stored.document, **changes},
            parse=parse_config,
            actor=owner.email,
            expected_etag=stored.etag,
        )

    with open_as(owner, own_origin, f"/t/{tenant.pk}/config") as dashboard:
        page = dashboard.page
        page.fill("[name=ttlSeconds]", "90")
        page.fill("[name=views]", "sales.latest = sales.orders, sales.lines")
        page.select_option("[name=adapterType]", "snowflake")
        page.fill("[name=serverHostname]", "wh.example.com")
        write(labels={"team": "blue"})
        page.click("header >> text=Save")
        dialog = page.locator("dialog")
        expect(dialog).to_contain_text("Another user saved revision 1 first")
        expect(dialog.locator("table >> nth=0")).to_contain_text("blue")
        expect(dialog.locator("table >> nth=1")).to_contain_text("warehouse.views.sales.latest")
        page.click("dialog .danger")
        page.wait_for_selector(".notice:has-text('Saved.')")
    document = read_config(tenant.pk).document
    assert (read_config(tenant.pk).seq, document["labels"]) == (2, {})
    assert document["warehouse"]["views"] == {"sales.latest": ["sales.orders", "sales.lines"]}
    Tenant.objects.filter(pk=tenant.pk).delete()
    account.delete()


def test_new_terms_say_what_changed(demo: Demo, browser: Browser, service: str, own_origin: str) -> None:
    reader = factories.make_user("reader@elsewhere.example")
    sign_in(reader)
    # So that the words for the time do not depend on how fast the test is.
    Acknowledgement.objects.filter(user=reader).update(acknowledged_at=now() - timedelta(days=3))
    before = require_active().markdown
    publish(f"{before}\n\nLogs stay in the Union.\n", actor="admin@meridian.example")
    proof = complete_sign_in(Identity(email=reader.email, email_verified=True), Device())
    with watched_dashboard(browser, home=own_origin, api=service) as dashboard:
        page = dashboard.page
        page.add_init_script("sessionStorage.setItem('dashboard.signin', JSON.stringify({at: Date.now()}))")
        page.goto(f"{own_origin}?{urlencode(msgspec.structs.asdict(proof))}#/")
        expect(page.locator(".callout")).to_have_text(
            "The terms have changed. You accepted the ones before 3 days ago. New or changed:"
            "Logs stay in the Union."
        )
        page.click("text=Accept and go on")
        page.wait_for_selector("h1:has-text('First steps')")
    publish(before, actor="admin@meridian.example")
