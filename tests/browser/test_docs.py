"""The page of the contract: operations are found by words, and examples run with one's own token."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests import factories
from tests.browser.browsing import browsing

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_operations_are_found_and_an_example_runs(chromium: str, service: str) -> None:
    world = factories.make_world()
    secret = factories.pat_secret(world.member, "config:read", tenants=[str(world.tenant.pk)])
    with browsing(chromium) as page:
        page.goto(f"{service}/docs")
        page.fill("[placeholder='Find operations: markers, replay, put rules']", "put draft")
        expect(page.locator(".opblock")).to_have_count(1)
        assert page.is_visible("#operations-Rules-replaceDraft")
        assert page.is_disabled("[data-run=rules]")
        page.fill("[name=pat]", secret)
        page.click("text=Use it here")
        page.wait_for_selector("output:has-text('It reaches Warehouse.')")
        page.click("[data-run=rules]")
        page.wait_for_selector(f"#answer:has-text('GET /config/tenants/{world.tenant.pk}/rules')")
        page.wait_for_selector("#answer:has-text('\"rules\": []')")
        page.fill("[name=pat]", "tas_pat_wrong")
        page.click("text=Use it here")
        page.wait_for_selector("output:has-text('This token was refused')")
        assert page.is_disabled("[data-run=rules]")
