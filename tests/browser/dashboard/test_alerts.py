"""An owner makes an alert, tests it, reads what became of the messages, changes it and deletes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from playwright.sync_api import expect
from standardwebhooks.webhooks import Webhook

from analytics.jobs.alerts import Reading, record_reading
from analytics.models import Alert
from analytics.watch.alerts import signing_secrets
from tenantadmin.lib.core.timestamps import now
from tests.receiver import receiver
from tests.sending import send_all

if TYPE_CHECKING:
    from tests.browser.dashboard.demo import Demo
    from tests.receiver import Receiver

__all__ = ["receiver"]

pytestmark = pytest.mark.browser


def test_an_alert_is_made_tested_changed_and_deleted(
    demo: Demo, home: str, open_as: Callable[..., Any], receiver: Receiver
) -> None:
    demo.member.last_login = now()
    demo.member.save()
    # What other tests left.
    send_all()
    with open_as(demo.owner, home, "/") as dashboard:
        page = dashboard.page
        dialog = page.locator("dialog")
        # "Page me in PagerDuty when the bill passes 500": five clicks from Home.
        page.locator("main").get_by_role("link", name=demo.name).first.click()
        page.get_by_role("link", name="Alerts").click()
        expect(page.locator("main")).to_contain_text("No alert yet.")
        presets = page.locator("[aria-label=Presets] tbody tr")
        expect(presets).to_have_count(5)
        bill = presets.filter(has_text="The bill of the month")
        expect(bill).to_contain_text("The bill of the month (UTC) is 1,000 USD or more so far")
        bill.get_by_role("button", name="Choose…").click()
        expect(dialog).to_contain_text("In USD, above 0")
        dialog.locator("[name=threshold]").fill("500")
        dialog.get_by_label("Type of channel").select_option("pagerduty")
        dialog.get_by_label("Address").fill("k" * 32)
        dialog.get_by_role("button", name="Create").click()
        row = page.locator("[aria-label=Alerts] tbody tr")
        expect(row).to_contain_text("The bill of the month")
        alert = Alert.objects.get()
        assert (alert.kind, alert.threshold, alert.channels[0]["key"]) == ("bill", 500.0, "k" * 32)
        record_reading(alert, Reading(620.5, currency="USD"))
        expect(row).to_contain_text("now 620.50 USD; since just now")
        expect(page.locator("main")).to_contain_text("Not watched yet")
        expect(presets).to_have_count(4)
        # The others in one click.
        presets.filter(has_text="Shared results").get_by_role("button", name="Mail me").click()
        expect(row).to_have_count(2)
        expect(row.first).to_contain_text(f"email: {demo.owner.email}")
        Alert.objects.all().delete()
        dashboard.go(f"/t/{demo.tenant}/overview")
        dashboard.go(f"/t/{demo.tenant}/alerts")

        page.click("button:has-text('New alert')")
        expect(dialog.get_by_label("Address")).to_have_value(demo.owner.email)
        dialog.get_by_role("button", name="Create").click()
        # The browser says what is missing, at the field.
        expect(dialog.get_by_label("Name")).to_be_focused()
        dialog.get_by_label("Name").fill("Shared results")
        dialog.get_by_label("What").select_option("leak")
        expect(dialog.locator("[name=threshold]")).to_have_value("1")
        expect(dialog).to_contain_text("In statements, above 0")
        expect(dialog).to_contain_text("In days, at most 7.")
        dialog.get_by_label("Address").fill("stranger@example.org")
        dialog.get_by_role("button", name="Create").click()
        # A refusal stands at the field, which has the focus.
        refusal = dialog.locator("fieldset .row").get_by_role("alert")
        expect(refusal).to_have_text("stranger@example.org is not a member of this tenant.")
        expect(dialog.get_by_label("Address")).to_be_focused()
        dialog.get_by_label("Address").fill(demo.member.email)
        dialog.get_by_role("button", name="Add a channel").click()
        dialog.get_by_label("Type of channel").nth(1).select_option("webhook")
        dialog.get_by_label("Address").nth(1).fill("https://10.0.0.9/secret")
        dialog.get_by_role("button", name="Create").click()
        expect(refusal).to_have_text("Give a URL whose host is public.")
        expect(dialog.get_by_label("Address").nth(1)).to_have_attribute("aria-invalid", "true")
        # A test says at each channel what its receiver answered.
        dialog.get_by_label("Address").nth(1).fill(receiver.url)
        answer = dialog.locator("fieldset .row [role=status]").nth(1)
        for status, said in ((403, "not sent The receiver answered with status 403."), (200, "sent The")):
            receiver.status = status
            dialog.get_by_role("button", name="Send a test").click()
            expect(answer).to_contain_text(said)
        dialog.get_by_label("Address").nth(1).fill("https://hooks.example.org/secret")
        dialog.get_by_role("button", name="Create").click()
        expect(row).to_contain_text("Shared results")
        expect(row).to_contain_text("first look within a minute")
        expect(row).to_contain_text("never")
        expect(row).to_contain_text("webhook: hooks.example.org")
        alert = Alert.objects.get()
        assert (alert.kind, alert.threshold, alert.window) == ("leak", 1.0, 1)

        # The page shows the first number by itself.
        record_reading(alert, Reading(0.0))
        expect(row).to_contain_text("now 0 statements")
        # A link to the page itself reads it again.
        record_reading(alert, Reading(None))
        page.get_by_role("link", name="Alerts").click()
        expect(row).to_contain_text("the log has too little to say it")
        row.get_by_role("button", name="Send a test").click()
        expect(page.locator(".notice").last).to_contain_text("2 test messages will be sent within seconds")
        alert.deliveries.filter(channel_number=1).delete()
        record_reading(alert, Reading(2.0))
        alert.deliveries.filter(channel_number=1).delete()
        assert send_all() == 2
        row.get_by_role("link", name="Messages").click()
        messages = page.locator("[aria-label=Messages] tbody tr")
        expect(messages).to_have_count(2)
        expect(messages.first).to_contain_text("delivered")
        expect(row).to_contain_text("now 2 statements; since just now")
        expect(page.locator("[aria-label=History] tbody tr")).to_contain_text("2 statements")
        secret = page.locator("main code")
        expect(secret).to_contain_text("whsec_")
        former = secret.inner_text()
        page.get_by_role("button", name="New secret").click()
        expect(secret).not_to_have_text(former)
        expect(page.locator("main")).to_contain_text("The former secret signs too until")

        row.get_by_role("button", name="Change").click()
        expect(dialog.get_by_label("Address").nth(1)).to_have_value("https://hooks.example.org/secret")
        # The receiver verifies the signature of the alert that it knows.
        dialog.get_by_label("Address").nth(1).fill(receiver.url)
        dialog.get_by_role("button", name="Send a test").click()
        expect(answer).to_contain_text("sent The")
        headers, body = receiver.messages[-1]
        alert.refresh_from_db()
        Webhook(signing_secrets(alert)[0]).verify(body, headers)
        dialog.get_by_label("Address").nth(1).fill("https://hooks.example.org/secret")
        dialog.locator("[name=threshold]").fill("3")
        dialog.get_by_label("Quiet from (UTC)").fill("22:00")
        dialog.get_by_label("Quiet until (UTC)").fill("06:30")
        # Nobody overwrites what another user saved meanwhile.
        Alert.objects.update(version=uuid4())
        dialog.get_by_role("button", name="Save").click()
        expect(dialog).to_contain_text("Another user has changed this alert.")
        Alert.objects.update(version=alert.version)
        dialog.get_by_role("button", name="Save").click()
        expect(row).to_contain_text("3 statements")
        assert "N" not in row.inner_text()
        alert.refresh_from_db()
        assert alert.quiet_hours == {"from": "22:00", "to": "06:30"}

        row.get_by_role("button", name="Delete").click()
        dialog.get_by_role("button", name="Delete").click()
        expect(page.locator("main")).to_contain_text("No alert yet.")
    assert not Alert.objects.exists()


def test_a_reader_sees_alerts_and_may_not_change_them(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    alert = Alert.objects.create(
        tenant_id=demo.tenant,
        name="Errors",
        kind="errors",
        threshold=5,
        window=1,
        channels=[{"type": "slack", "url": "https://hooks.example.org/secret"}],
    )
    record_reading(alert, Reading(7.5))
    with open_as(demo.member, home, f"/t/{demo.tenant}/alerts?alert={alert.pk}") as dashboard:
        page = dashboard.page
        expect(page.locator("[aria-label=Alerts] tbody tr")).to_contain_text("7.5%")
        expect(page.locator("[aria-label=Messages] tbody tr")).to_contain_text("slack: hooks.example.org")
        assert page.locator("button:has-text('New alert'), button:has-text('Change')").count() == 0
        assert "secret" not in page.content()
    alert.delete()
