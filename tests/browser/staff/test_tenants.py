"""Daily tasks of staff on one tenant, each with a budget of clicks from Home.

`browsing` fails if a page reports an error, such as a violation of its content policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from accounts.models import Revision
from logs.models import Partition, PendingBuild
from rules.drafts import create_draft
from rules.models import Marker, Ruleset
from rules.write import write_ruleset
from tests.admin.filling import DAY, put_log, recommend
from tests.browser.staff.tasks import RULE, signed_in

if TYPE_CHECKING:
    from accounts.models import Tenant
    from tests import factories


pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("said", ["Wareh", "db.acme.example", "member@example.org"])
def test_find_a_tenant_and_see_how_it_does(
    chromium: str, service: str, world: factories.World, tenant: Tenant, said: str
) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.find(said)
        assert clicks.count <= 2
        assert page.url == f"{service}/admin/tenants/{tenant.pk}/"
        expect(page.locator("#health")).to_contain_text("7 days 50.0%, 28 days 70.0%")


def test_stale_data_is_invalidated(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.open("invalidate Wareh", "backfill, ticket 5")
        page.fill("[name=tables]", "sales.orders")
        clicks.click("button >> text=Preview >> nth=0")
        # The rule names the table, so it is ticked, although the log has no result of it.
        page.wait_for_selector("dialog >> text=The log shows no cached result of the 1 ticked rule.")
        expect(page.locator("dialog [name=reason]")).to_have_value("backfill, ticket 5")
        clicks.click("dialog .danger")
        page.wait_for_selector(".callout:has-text('Invalidated: orders.')")
        assert clicks.count <= 5
        assert Marker.objects.get().metadata == {"reason": "backfill, ticket 5"}
        page.click("[aria-label=Markers] button:has-text('Remove')")
        page.once("dialog", lambda prompt: prompt.accept("a mistake"))
        page.click("dialog .danger")
        page.wait_for_selector("text=No marker is active")
    assert Marker.objects.get().removed_at is not None


def test_the_cause_of_a_fallen_hit_rate_is_restored(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.click("#drops a")
        clicks.click("#acts a[href*='seq%3D2']")
        page.fill("[name=reason]", "the hit rate fell")
        clicks.click("button.button:has-text('Open')")
        page.wait_for_selector("h2:has-text('Revision 2')")
        clicks.click("#seq-1 button")
        clicks.click("main button:has-text('Restore')")
        clicks.click("dialog .foot button:has-text('Restore')")
        page.wait_for_selector("text=Revision 3 is in force.")
        assert clicks.count <= 7
    ruleset = Ruleset.objects.get(pk=tenant.pk)
    assert (ruleset.seq, ruleset.rules[0]["ttlSeconds"]) == (3, 3600)


def test_a_rule_is_edited_with_lint_as_one_types(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.open("rules Wareh", "shorter")
        clicks.click("main a:has-text('Edit as JSON')")
        edit = "text => document.querySelector('.editor').env.editor.setValue(text)"
        page.wait_for_selector(".ace_line >> text=orders")
        # Fields, keys and operators are completed.
        page.evaluate(edit, "")
        page.evaluate("document.querySelector('.editor').env.editor.focus()")
        page.keyboard.type("containsA")
        page.wait_for_selector(".ace_autocomplete:visible >> text=containsAny")
        page.keyboard.press("Escape")
        page.evaluate(edit, '[\n  {"id": "orders", "conditions": {"isReadOnly": true}, "ttlSeconds": -1}\n]')
        page.wait_for_selector("[aria-label=Findings] >> text=line 2")
        safe = '"conditions": {"isReadOnly": true}, "varyBy": ["userName"], "ttlSeconds": 90'
        page.evaluate(edit, f'[\n  {{"id": "orders", {safe}}}\n]')
        expect(page.locator("[aria-label=Findings]")).not_to_contain_text("line 2")
        clicks.click("main button:has-text('Review and publish')")
        expect(page.locator("dialog [name=comment]")).to_have_value("shorter")
        clicks.click("dialog .foot button:has-text('Publish')")
        page.wait_for_selector("text=Revision 3 is in force.")
        assert clicks.count <= 6
    assert Ruleset.objects.get(pk=tenant.pk).rules[0]["ttlSeconds"] == 90


def test_a_draft_of_earlier_rules_is_rebased_and_published(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    longer = {"name": "Longer", "rules": [{**RULE, "ttlSeconds": 90}], "baseSeq": 1}
    create_draft(tenant_id=tenant.pk, document=longer, actor="owner@example.org")
    write_ruleset(
        tenant_id=tenant.pk,
        document={"rules": [RULE, {**RULE, "id": "items"}]},
        actor="owner@example.org",
    )
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.open("drafts Wareh", "ticket 4")
        clicks.click("main a:has-text('Longer')")
        page.once("dialog", lambda prompt: prompt.accept("ticket 4"))
        clicks.click("text=Rebase onto revision 3")
        page.wait_for_selector("text=The rules in force stay as they are.")
        clicks.click("main button:has-text('Review and publish')")
        clicks.click("dialog .foot button:has-text('Publish')")
        page.wait_for_selector("text=Revision 4 is in force.")
        assert clicks.count <= 8
    rules = Ruleset.objects.get(pk=tenant.pk).rules
    assert [(rule["id"], rule["ttlSeconds"]) for rule in rules] == [("orders", 90), ("items", 3600)]


def test_a_quarantined_day_is_built_again(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.click("#quarantine a")
        clicks.click("text=Try again")
        assert page.input_value("[name=first]") == Partition.objects.get().day.isoformat()
        page.fill("[name=reason]", "mended at the source")
        clicks.click("button.button:has-text('Build again')")
        page.wait_for_selector("text=1 day will be built again.")
        page.wait_for_selector("#builds >> text=pending")
        assert clicks.count <= 3
    assert Partition.objects.get().listing_digest == ""


def test_the_focus_stays_in_a_part_that_is_read_again(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    PendingBuild.objects.create(tenant_id=tenant.pk, day=Partition.objects.get().day)
    with signed_in(chromium, service, world) as (page, _):
        page.clock.install()
        page.goto(f"{service}{reverse('admin:tenant-builds', args=[tenant.pk])}")
        page.locator("#builds").evaluate("it => { it.isFirst = true; }")
        link = page.locator("#builds a:has-text('Build again')").first
        link.focus()
        page.clock.run_for(4000)
        page.wait_for_function("!document.querySelector('#builds').isFirst")
        expect(link).to_be_focused()


def test_a_recommendation_is_accepted(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    rule = {"id": "ads", "conditions": {"isReadOnly": True}, "ttlSeconds": 60}
    found = recommend(
        tenant, rules=[rule], patch=[{"op": "insert", "ruleId": "ads", "before": None, "rule": rule}]
    )
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.find_other("recommendations wareh", "/open/")
        page.fill("[name=reason]", "saves time")
        clicks.click("button.button:has-text('Open')")
        clicks.click("main .statement summary")
        page.wait_for_selector("text=≈ 50 more")
        clicks.click("main button:text-is('Accept')")
        expect(page.locator("dialog pre")).to_contain_text('"ads"')
        clicks.click("dialog .foot button:has-text('Accept and publish')")
        page.wait_for_selector("text=Effects are measured after three whole days.")
        assert clicks.count <= 6
    found.refresh_from_db()
    assert (found.state, found.accepted_seq) == ("accepted", 3)
    revision = Revision.objects.get(tenant_id=tenant.pk, kind="rules", seq=3)
    assert (revision.user, revision.summary["comment"]) == ("admin@example.org", "saves time")


def test_sql_is_run(chromium: str, service: str, world: factories.World, tenant: Tenant) -> None:
    put_log(tenant, {"userName": "ana"}, {"userName": "bea"})
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.open("sql Wareh", "ticket 7", hours="1")
        page.wait_for_selector(".ace_line >> text=proxy_logs")
        sql = f"SELECT userName FROM proxy_logs WHERE day = '{DAY}' AND userName > {{{{least}}}} ORDER BY ALL"
        page.evaluate("sql => document.querySelector('.editor').env.editor.setValue(sql)", sql)
        page.fill("[name=least]", "b")
        clicks.click("main >> button:has-text('Run')")
        expect(page.locator("[aria-label=Result] td")).to_have_text(["bea"])
        assert clicks.count <= 4


def test_a_request_is_explained(chromium: str, service: str, world: factories.World, tenant: Tenant) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.open("explain Wareh", "ticket 7")
        clicks.click("main button:has-text('Explain')")
        page.wait_for_selector("p:has-text('orders decides')")
        page.select_option("[name=by]", "revision")
        page.fill("[name=seq]", "0")
        page.click("main button:has-text('Explain')")
        page.wait_for_selector("text=No rule matches:")
        assert clicks.count <= 4
