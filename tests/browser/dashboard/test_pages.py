"""The pages of the dashboard."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID

import pytest
from django.core.management import call_command
from playwright.sync_api import expect

from accounts.models import Tenant
from analytics.models import Digest, Mining, ReplayRun
from analytics.replay.execution import run_next
from analytics.replay.runs import queue_replay
from analytics.words.verdict import read_verdict
from rules.drafts import create_draft, publish_draft
from rules.language import complete_rule
from rules.models import RuleDraft, Ruleset
from rules.write import restore_ruleset, write_ruleset
from tenantadmin.lib.core.formats import span
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.admin.filling import recommend
from tests.browser.browsing import faults_of_width, type_sql
from tests.browser.dashboard.demo import at_both_origins
from tests.browser.dashboard.watching import edit

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.browser.dashboard.demo import Demo

EDITOR = "ace.edit(document.querySelector('.ace_editor'))"
pytestmark = pytest.mark.browser


def test_tenants_and_overview(demo: Demo, home: str, open_as: Callable[..., Any]) -> None:
    with open_as(demo.owner, home) as dashboard:
        page = dashboard.page
        assert page.url == f"{home}#/"
        assert page.title() == "Tenants · tenantadmin"
        assert page.locator("tbody tr").count() == 2
        expect(page.locator(f"tbody tr:has-text('{demo.name}')")).to_contain_text("%")
        del dashboard.asked[:]
        page.click(f"text={demo.name}")
        page.wait_for_selector(".chart[data-drawn]")
        dashboard.settle()
        assert [path.replace(demo.tenant, "T").partition("?")[0] for path in dashboard.asked] == [
            "POST /users/me/tokens",
            "POST /oauth/token",
            "GET /tenants/T/activity",
            "GET /tenants/T/timeline",
            "GET /tenants/T/savings",
            "GET /tenants/T/verdict",
            "GET /tenants/T/setup",
        ]
        expect(page.locator(".verdict strong").first).to_have_text(read_verdict(UUID(demo.tenant)).text)
        tiles = dict(
            zip(page.locator("dt").all_inner_texts(), page.locator("dd").all_inner_texts(), strict=True)
        )
        assert next(iter(tiles)) == "Saved on the bill"
        assert tiles["Hit rate"].endswith("%")
        requests, *kinds = (
            int(tiles[name].split("\n")[0].replace(",", ""))
            for name in ("Requests", "Hits", "Misses", "Not cached (bypassed, passed through)")
        )
        assert requests == sum(kinds) > 100
        expect(page.locator("#view")).to_contain_text("Not compared with the period before")
        page.click("nav[aria-label='Length of the period'] >> text=Month")
        page.wait_for_selector("text=by hour of day, mean of the month")
        # The menu keeps the period on the pages that have one.
        links = page.locator("nav[aria-label=Pages] a")
        month = f"#/t/{demo.tenant}/savings?period={demo.last_day:%Y-%m}"
        expect(links.filter(has_text="Savings")).to_have_attribute("href", month)
        expect(links.filter(has_text="Overview")).to_have_attribute("href", f"#/t/{demo.tenant}/overview")
        dashboard.back()
        page.click("nav[aria-label='Length of the period'] >> text='Day'")
        page.wait_for_url(f"**period={demo.last_day}")
        page.wait_for_selector("text=Requests by hour")
        day = f"#/t/{demo.tenant}/statements?day={demo.last_day}"
        expect(links.filter(has_text="Statements")).to_have_attribute("href", day)
        dashboard.back()
        page.wait_for_selector("text=Requests by day")
        requests = page.inner_text("dd >> nth=2")
        page.click("nav[aria-label='Length of the period'] >> text=Year")
        page.wait_for_selector(f".chart[data-drawn] canvas[aria-label$='{demo.last_day.year}']")
        # All days of the demo are in one year, but for the first day of one.
        assert demo.last_day.timetuple().tm_yday == 1 or page.inner_text("dd >> nth=2") == requests
        dashboard.back()
        page.wait_for_selector("text=Data from the cache")
        del dashboard.asked[:]
        page.reload()
        dashboard.settle()
        # With what is left to set up.
        assert len(dashboard.asked) == len(set(dashboard.asked)) == 7


def test_a_day_by_rule_and_checked_against_the_log(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, home, f"/t/{demo.tenant}/overview?period={demo.last_day}") as dashboard:
        page = dashboard.page
        page.click("summary:has-text('By rule')")
        page.wait_for_selector("[aria-label='By rule'] tbody tr")
        assert faults_of_width(page, "#view") == {}
        check = page.locator("section:has(h2:text('Check these numbers'))")
        for document in ("day", "savings"):
            check.locator("select").select_option(document)
            check.locator("button").click()
            expect(check.locator(".badge.good")).to_contain_text("are equal")
            expect(check.locator("details").first).to_contain_text("SELECT")
    with open_as(demo.owner, home, f"/t/{demo.tenant}/invalidate?tables=sales.orders") as dashboard:
        expect(dashboard.page.locator("textarea[name=tables]")).to_have_value("sales.orders")


def test_savings(demo: Demo, home: str, open_as: Callable[..., Any]) -> None:
    with open_as(demo.owner, home, f"/t/{demo.tenant}/overview") as dashboard:
        page = dashboard.page
        page.click("dd >> nth=0 >> a:has-text('USD')")
        page.wait_for_selector("h1:has-text('Savings')")
        page.wait_for_selector(".chart[data-drawn]")
        tiles = dict(
            zip(page.locator("dt").all_inner_texts(), page.locator("dd").all_inner_texts(), strict=True)
        )
        assert list(tiles) == [
            "Saved on the bill",
            "Warehouse time saved",
            "Billed with the cache",
            "Billed without the cache",
        ]
        assert "USD" in tiles["Saved on the bill"]
        # Beside a window stands what a month of it would be.
        assert ["a month" in shown for shown in tiles.values()] == [True] * 4
        assert "of statements that did not run" in page.inner_text("#view")
        assert page.locator("[aria-label='Savings by rule'] tbody tr").count() > 2
        rule = page.locator("[aria-label='Savings by rule'] [title=catalog-pages]")
        expect(rule).to_have_text("Product pages")
        assert rule.get_attribute("href") == f"#/t/{demo.tenant}/rules?rule=catalog-pages"
        page.click("nav[aria-label='Length of the period'] >> text=28 days")
        page.wait_for_selector("text=Billed by day")
        # The list of rules has the same time of the same days.
        row = page.locator("[aria-label='Savings by rule'] tr:has([title=catalog-pages])")
        spared = row.locator("[data-label='Warehouse time saved']").inner_text()
        days = page.inner_text(".page-head p").split(", with requests")[0]
        dashboard.go(f"/t/{demo.tenant}/rules")
        expect(page.locator("#rule-catalog-pages [data-unit=saved]")).to_have_text(spared)
        expect(page.locator(".panel-head")).to_contain_text(days)
        page.go_back()
        since = re.compile(rf" to .*, with requests since .* {demo.last_day.year}\.")
        expect(page.locator(".page-head p")).to_have_text(since)
        page.click("nav[aria-label='Length of the period'] >> text=Year")
        page.wait_for_selector("text=Billed by month")
        dashboard.go(f"/t/{demo.tenant}/savings?period=2020-01")
        expect(page.locator("#view")).to_contain_text("There are no requests in January 2020.")


def test_the_overview_opens_the_28_days_up_to_the_last_with_requests(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, home) as dashboard:
        page = dashboard.page
        page.clock.set_fixed_time((demo.last_day + timedelta(days=40)).isoformat())
        dashboard.go(f"/t/{demo.tenant}/overview")
        page.wait_for_selector(".chart[data-drawn]")
        days = "{:%a, %-d %b %Y} to {:%a, %-d %b %Y}"
        expect(page.locator("h1")).to_have_text(f"Overview of {demo.name}")
        period = page.locator(".page-head p")
        first = demo.last_day - timedelta(days=27)
        expect(period).to_contain_text(days.format(first, demo.last_day))
        page.click("nav[aria-label='Length of the period'] >> text=7 days")
        first = demo.last_day - timedelta(days=6)
        expect(period).to_contain_text(days.format(first, demo.last_day))
        page.click("[aria-label=Earlier]")
        first = demo.last_day - timedelta(days=13)
        expect(period).to_contain_text(days.format(first, first + timedelta(days=6)))


@at_both_origins
def test_rules_are_edited_with_lint_compared_and_published(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.owner, home, f"/t/{demo.tenant}/rules") as dashboard:
        page = dashboard.page
        count = page.locator(".rule").count()
        assert count > 5
        page.click("text=Edit as JSON")
        page.wait_for_selector("text=no findings")
        lines: list[str] = []

        def mistype(text: str) -> str:
            text = text.replace('"enabled": true', '"enabled": try"', 1)
            lines[:] = text.split("\n")
            return text

        edit(page, mistype)
        finding = page.locator(".findings li").filter(has_text="try is no value. A text stands in quotes.")
        row = next(number for number, line in enumerate(lines, 1) if 'try"' in line)
        assert row < len(lines)
        expect(finding).to_have_text(re.compile(rf"line {row}\D"))
        # The line that lacks the comma is marked, also where the cursor is, and not the line after it.
        edit(page, lambda text: text.replace('"enabled": try",', '"enabled": true', 1))
        page.wait_for_selector("text=A comma is missing after true.")
        page.click(f".findings button:has-text('line {row}')")
        mark = page.locator(".ace_gutter-active-line.ace_error")
        expect(mark).to_have_text(str(row))
        expect(mark).to_have_css("background-image", re.compile("url"))
        # A no-break space, as in copied text, is not white space of JSON.
        edit(page, lambda text: text.replace('"enabled": true\n', '"enabled": true\xa0,\n', 1))
        expect(page.locator(".findings li")).to_have_text(re.compile(rf"line {row}true\s+is no value"))
        edit(page, lambda text: text.replace('"enabled": true\xa0,\n', '"enabled": true,\n', 1))
        page.wait_for_selector("text=no findings")
        edit(page, lambda text: text.replace('"ttlSeconds"', '"id": "x", "ttlSecond"', 1))
        page.wait_for_selector("text=is there twice, in lines 3 and 13.")
        page.click("text=Review and publish")
        page.wait_for_selector(".notice.error:has-text('Correct line 13 first')")
        edit(page, lambda text: text.replace('"id": "x", ', ""))
        page.wait_for_selector("text=did you mean ttlSeconds?")
        page.click("text=Review and publish")
        page.wait_for_selector(".notice.error:has-text('Correct the')")
        was, now = "", ""

        def change(text: str) -> str:
            nonlocal was, now
            text = text.replace('"ttlSecond"', '"ttlSeconds"', 1)
            # The time of rules that do not cache has no effect.
            before, mark, after = text.partition('"action": "cache"')
            was = found[1] if (found := re.search(r'"ttlSeconds": (\d+)', after)) else ""
            now = str(int(was) + 60)
            return before + mark + after.replace(f'"ttlSeconds": {was}', f'"ttlSeconds": {now}', 1)

        edit(page, change)
        # What the last try said holds no longer.
        expect(page.locator(".notice.error")).to_have_count(0)
        page.wait_for_selector("text=no findings")
        page.click("text=Review and publish")
        assert page.inner_text("dialog td:has-text('A result is fresh for') + .was") == span(int(was))
        assert page.inner_text("dialog td.now") == span(int(now))
        page.fill("dialog input[name=comment]", "A minute more")
        page.click("dialog >> text=Publish >> nth=-1")
        page.wait_for_selector(".notice:has-text('is in force.')")
        rule = page.locator(".rule").nth(0)
        rule.locator("summary").click()
        assert rule.locator("pre").is_visible()
        page.click("main >> text=History")
        page.wait_for_selector("h2:has-text('Revision ')")
        newest = int(page.inner_text(".chosen strong").removeprefix("Revision "))
        expect(page.locator(".chosen")).to_contain_text(re.compile("in force.*“A minute more”", re.DOTALL))
        expect(page.locator("main .button:has-text('Restore')")).to_have_count(0)
        assert page.inner_text("td.now") == span(int(now))
        page.click(f"#seq-{newest - 1} button")
        page.wait_for_selector(f"h2:has-text('Revision {newest - 1}')")
        page.click("main .button:has-text('Restore')")
        expect(page.locator("dialog")).to_contain_text(f"Revision {newest - 1} was in force ")
        page.click("dialog .button:has-text('Restore')")
        page.wait_for_selector(f".chosen:has-text('restored revision {newest - 1}')")


def test_what_hurts_is_published_by_the_name_of_the_rule(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    """And a replay of it is offered first."""

    def add(text: str) -> str:
        rules = json.loads(text)
        more = {"conditions": {"isDataChange": True}, "varyBy": ["userName"], "ttlSeconds": 60}
        return json.dumps(
            [*rules, {"id": "writes", "name": "All writes", "action": "cache", **more}], indent=2
        )

    with open_as(demo.owner, home, f"/t/{demo.tenant}/rules") as dashboard:
        page = dashboard.page
        page.click("text=Edit as JSON")
        page.wait_for_selector("text=no findings")
        edit(page, add)
        page.wait_for_selector(".findings >> text=has no effect if it is served from the cache")
        page.click("text=Review and publish")
        dialog = page.locator("dialog")
        expect(dialog).to_contain_text("What All writes does can hurt:")
        expect(dialog.get_by_role("button", name="Replay them first")).to_be_visible()
        publish = dialog.locator(".button.danger")
        expect(publish).to_be_disabled()
        expect(dialog.get_by_role("status")).to_have_text("Type the name of each rule that can hurt.")
        name = dialog.get_by_label("Type All writes to publish it all the same")
        name.fill("All")
        expect(publish).to_be_disabled()
        name.fill("All writes")
        expect(publish).to_be_enabled()
        dialog.get_by_role("button", name="Cancel").click()
        edit(page, lambda text: json.dumps(json.loads(text)[:-1], indent=2))
        page.wait_for_selector("text=no findings")


def test_a_simple_rule_is_made_and_changed_by_form(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.admin, home, f"/t/{demo.tenant}/rules/edit") as dashboard:
        page = dashboard.page
        before = rules_in_editor(page)
        # After what is refused or never cached.
        at = next(index for index, rule in enumerate(before) if rule["action"] == "cache")
        assert at > 0
        page.click("text=Add or edit by form")
        page.fill("dialog input[name=tables]", "sales.orders, sales.lines")
        page.fill("dialog input[name=amount]", "2")
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog [role=alert]:has-text('Give the rule a name.')")
        page.fill("dialog input[name=name]", "Orders, two hours")
        page.click("dialog .primary")
        made: dict[str, Any] = {
            "id": "orders-two-hours",
            "name": "Orders, two hours",
            "action": "cache",
            "conditions": {
                "tables": {"containsAny": ["sales.orders", "sales.lines"]},
                "isReadOnly": True,
                "hasNonDeterministicFunctions": False,
            },
            "ttlSeconds": 7200,
            "varyBy": ["userName"],
        }
        assert rules_in_editor(page) == [*before[:at], made, *before[at:]]
        line = next(number for number, text in enumerate(editor_text(page).split("\n")) if made["id"] in text)
        expect(page.locator(".panel [role=status] >> nth=0")).to_have_text(
            f"Added: Orders, two hours, line {line}. Not published yet."
        )
        assert page.evaluate(f"{EDITOR}.getCursorPosition().row") == line - 1
        expect(page.locator(".lint-changed").first).to_be_visible()
        page.click("text=Add or edit by form")
        page.select_option("dialog select[name=rule]", "orders-two-hours")
        assert page.input_value("dialog input[name=tables]") == "sales.orders, sales.lines"
        page.select_option("dialog select[name=action]", "bypass")
        expect(page.locator("dialog input[name=amount]")).to_be_hidden()
        page.fill("dialog input[name=users]", "Ada Lovelace")
        page.uncheck("dialog input[name=repeats]")
        page.click("dialog .primary")
        made["action"] = "bypass"
        del made["varyBy"]
        made["conditions"] = {
            "tables": {"containsAny": ["sales.orders", "sales.lines"]},
            "userName": {"in": ["Ada Lovelace"]},
            "isReadOnly": True,
        }
        assert rules_in_editor(page) == [*before[:at], made, *before[at:]]
        expect(page.locator(".panel [role=status] >> nth=0")).to_contain_text("Changed: Orders, two hours")
        page.click("text=Review and publish")
        expect(page.locator("dialog h3")).to_contain_text("Orders, two hours orders-two-hours")
        page.click("dialog >> text=Publish >> nth=-1")
        page.wait_for_selector(".notice:has-text('is in force.')")
        page.click(f".rule >> nth={at}")
        changed = page.locator(f".rule >> nth={at} >> [aria-label='Last changed by']")
        expect(changed).to_contain_text(re.compile("tenant-admin@example.org.*all of it$", re.DOTALL))
    seq = Ruleset.objects.get(tenant_id=demo.tenant).seq
    restore_ruleset(tenant_id=UUID(demo.tenant), seq=seq - 1, actor=demo.owner.email)


def test_rules_are_turned_off_moved_and_changed_in_the_list(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    live = Ruleset.objects.get(tenant_id=demo.tenant).rules
    for rules in ([{**live[0], "id": "month-end"}, *live], live):
        written = write_ruleset(
            tenant_id=UUID(demo.tenant), document={"rules": rules}, actor=demo.owner.email
        )
    before = Ruleset.objects.get(tenant_id=demo.tenant)
    ids = [rule["id"] for rule in before.rules]
    [first, second] = ids[:2]
    # Digests and logs lead to rules that are no longer in force.
    with open_as(demo.owner, home, f"/t/{demo.tenant}/rules?rule=month-end") as dashboard:
        page = dashboard.page
        gone = page.locator("#view .callout")
        said = f"The rule {live[0]['name']} is not in force: revision {written.seq} removed it. It was:"
        expect(gone).to_have_text(said)
        href = f"#/t/{demo.tenant}/history?kind=rules&seq={written.seq}"
        expect(gone.locator("a")).to_have_attribute("href", href)
        # What it did stands below, as it was.
        was = page.locator(".callout + section")
        expect(was.locator(".rule-name")).to_have_text(live[0]["name"])
        expect(was.locator("pre")).to_be_visible()
        bar = page.locator(".bar")
        row = page.locator("[data-id='payroll-from-hr-only']")
        # A rule that never caches has requests too, and no hit rate.
        figures = page.locator("[data-id='live-stock'] .figures > span")
        expect(figures).to_have_text([re.compile(r"^[1-9]\d*$"), "–", "–"])
        # One that denies has none that ran; it may have refused none in these two days.
        refused = re.compile(r"^(–|[1-9]\d* refused)$")
        expect(row.locator(".figures > span")).to_have_text([refused, "–", "–"])
        did = re.compile(
            r"0 hits, 0 misses, [1-9]\d* not cached, \d+ waited, failed or were refused, \d+ statement"
        )
        expect(page.locator("[data-id='live-stock'] .rule-more")).to_contain_text(did)
        expect(bar).to_be_hidden()
        row.locator("[role=switch]").click()
        expect(row.locator("[role=switch]")).to_be_focused()
        expect(bar).to_contain_text("1 change, not published")
        row.locator("[role=switch]").press("Space")
        expect(bar).to_be_hidden()
        page.click("text=Add a rule")
        page.fill("dialog input[name=name]", "A new one")
        page.click("dialog .primary")
        expect(page.locator("[data-id='a-new-one'] .edit")).to_be_focused()
        expect(page.locator("[data-id='a-new-one'] [role=switch]")).to_be_checked()
        row.locator("summary").click()
        # What opens with the rule comes late, and would move the rules below it.
        expect(row.locator("[aria-label='Last changed by']")).to_be_visible()
        row.locator("text=Remove the rule").click()
        expect(bar).to_contain_text("2 changes, not published")
        expect(page.locator(".panel-head h2")).to_be_focused()
        page.locator(".handle").first.press("Escape")
        expect(page.locator("text=Discard")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("[data-id]")).to_have_count(len(ids))
        expect(page.locator(".panel-head h2")).to_be_focused()
        row.locator("[role=switch]").click()
        handle = page.locator(f"[data-id='{second}'] .handle")
        handle.press("ArrowUp")
        expect(handle).to_be_focused()
        assert page.locator(".rule-row .place").all_inner_texts() == [
            str(index + 1) for index in range(len(ids))
        ]
        assert page.locator("[data-id] >> nth=0").get_attribute("data-id") == second
        # By the mouse, back and to the first place again.
        for number in (0, 1):
            box = page.locator(".handle").nth(number).bounding_box()
            assert box is not None
            page.mouse.move(box["x"] + 5, box["y"] + 20)
            page.mouse.down()
            page.mouse.move(box["x"] + 5, box["y"] + (100 if number == 0 else -45), steps=4)
            page.mouse.up()
        assert page.locator("[data-id] >> nth=0").get_attribute("data-id") == second
        row.locator(".edit").click()
        expect(page.locator("dialog .callout")).to_contain_text("clientIp in 10.20.40.0/24")
        page.fill("dialog input[name=tables]", "hr.*, payroll.*")
        page.click("dialog .primary")
        page.click(".edit >> nth=2")
        page.fill("dialog textarea[name=description]", "Asked for by the finance team")
        page.click("dialog .primary")
        expect(bar).to_contain_text("3 changes, not published")
        page.click("text=Review and publish")
        expect(page.locator("dialog h3")).to_have_count(2)
        page.fill("dialog input[name=comment]", "Tidy up")
        page.click("dialog .button:text-is('Publish')")
        page.wait_for_selector(f".notice:has-text('Revision {before.seq + 1} is in force.')")
        dashboard.settle()
        expect(bar).to_be_hidden()
        undo = page.locator(".notice").get_by_role("button", name=f"Undo: restore revision {before.seq}")
        # Beside another change, one could not tell what it undoes.
        page.locator("[role=switch]").last.click()
        expect(undo).to_be_hidden()
        page.click("text=Discard")
        published = Ruleset.objects.get(tenant_id=demo.tenant).rules
        assert [rule["id"] for rule in published] == [second, first, *ids[2:]]
        old, new = (
            next(rule for rule in rules if rule["id"] == "payroll-from-hr-only")
            for rules in (before.rules, published)
        )
        assert new == {
            **old,
            "enabled": False,
            "conditions": {**old["conditions"], "tables": {"containsAny": ["hr.*", "payroll.*"]}},
        }
        # The keys keep their order, in which the rule is told.
        assert list(new["conditions"]) == list(old["conditions"])
        undo.click()
        # The notice of a revision goes when its page is left.
        expect(page.locator(".notice")).to_have_text([re.compile("^Undone")])
        page.wait_for_selector(f"text=Revision {before.seq + 2}, published")
        expect(page.locator("[role=switch]:not(:checked)")).to_have_count(0)
        # What would this rule break: without a look at publishing it.
        page.locator("[role=switch]").last.click()
        bar.get_by_role("button", name="Replay").click()
        page.wait_for_url("**/replays/*")
        replay = ReplayRun.objects.get(pk=page.url.rpartition("/")[2])
        draft = RuleDraft.objects.get(pk=replay.subject["draftId"])
        assert [rule["enabled"] for rule in draft.rules] == [*[True] * (len(ids) - 1), False]
        replay.delete()
        draft.delete()
    assert Ruleset.objects.get(tenant_id=demo.tenant).rules == before.rules


def test_restoring_shows_the_replay_of_the_draft_that_the_revision_was(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    tenant = UUID(demo.tenant)
    before = Ruleset.objects.get(tenant_id=tenant)
    actor = demo.owner.email
    # Other rules than in any replay before.
    rules = [{**rule, "ttlSeconds": rule["ttlSeconds"] + 60 * before.seq} for rule in before.rules]
    draft = create_draft(tenant_id=tenant, document={"rules": rules}, actor=actor)
    queue_replay(
        tenant_id=tenant,
        first_day=demo.last_day,
        last_day=demo.last_day,
        warmup_days=1,
        gateway={},
        actor=actor,
        draft_id=draft.pk,
    )
    while run_next(default_store(), tenant_id=tenant):
        pass
    published = publish_draft(tenant_id=tenant, draft_id=draft.pk, actor=actor)
    restore_ruleset(tenant_id=tenant, seq=before.seq, actor=actor)
    with open_as(demo.owner, home, f"/t/{tenant}/history?seq={published.seq}") as dashboard:
        page = dashboard.page
        page.click("main .button:has-text('Restore')")
        expect(page.locator("dialog .callout")).to_contain_text("These rules would")
        expect(page.locator("dialog .tiles")).to_contain_text("Hits at risk of being stale")
        expect(page.locator("dialog")).to_contain_text("What publishing costs")
        expect(page.locator("dialog")).not_to_contain_text("of other rules")
        page.keyboard.press("Escape")
        ReplayRun.objects.filter(tenant_id=tenant, subject={"seq": 0}).delete()
        dashboard.go(f"/t/{tenant}/history?seq=0")
        page.click("main .button:has-text('Restore')")
        expect(page.locator("dialog .callout")).to_contain_text("No replay compares these rules with")
        page.click("dialog >> text=Replay them")
        page.wait_for_url("**/replays/*")
        run_next(default_store(), tenant_id=tenant)
        dashboard.go(f"/t/{tenant}/history?seq=0")
        page.click("main .button:has-text('Restore')")
        expect(page.locator("dialog .tiles")).to_contain_text("Hits at risk of being stale")


def rules_in_editor(page: Page) -> list[dict[str, Any]]:
    page.wait_for_selector("dialog", state="detached")
    page.wait_for_selector(".ace_editor")
    rules: list[dict[str, Any]] = json.loads(editor_text(page))
    return rules


def editor_text(page: Page) -> str:
    text: str = page.evaluate(f"{EDITOR}.getValue()")
    return text


def test_several_recommendations_are_one_draft(demo: Demo, home: str, open_as: Callable[..., Any]) -> None:
    tenant = Tenant.objects.get(pk=demo.tenant)
    found = []
    for rank, name in enumerate(("one", "two", "three")):
        rule = complete_rule({"id": name, "conditions": {"tables": {"containsAny": [f"s.{name}"]}}})
        found.append(
            factories.recommendation(
                tenant,
                fingerprint=name,
                rank=rank,
                title=f"Cache s.{name}",
                rules=[rule],
                patch=[{"op": "insert", "ruleId": name, "before": None, "rule": rule}],
                seq=Ruleset.objects.get(tenant_id=demo.tenant).seq,
            )
        )
    with open_as(demo.owner, home, f"/t/{demo.tenant}/recommendations") as dashboard:
        page = dashboard.page
        for name in ("one", "two", "three", "three"):
            page.get_by_label(f"Choose Cache s.{name}", exact=True).click()
        expect(page.locator(".bar")).to_contain_text("2 chosen")
        expect(page.locator("tbody tr").first).to_contain_text("adds 1 rule")
        page.click("text=Replay and publish")
        page.wait_for_url("**/replays/*")
    draft = RuleDraft.objects.get(name="Cache s.one and 1 more")
    assert [rule["id"] for rule in draft.rules][-2:] == ["one", "two"]
    assert ReplayRun.objects.filter(subject__draftId=str(draft.pk)).exists()
    draft.delete()
    for recommendation in found:
        recommendation.refresh_from_db()
        assert recommendation.state == "open"
        recommendation.delete()


def test_recommendations_are_drafted_accepted_and_dismissed(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    tenant = Tenant.objects.get(pk=demo.tenant)
    seq = Ruleset.objects.get(tenant_id=demo.tenant).seq
    found = {}
    for rank, name in enumerate(("drafted", "accepted", "dismissed")):
        rule = complete_rule({"id": name, "conditions": {"tables": {"containsAny": [f"s.{name}"]}}})
        patch = [{"op": "insert", "ruleId": name, "before": None, "rule": rule}]
        found[name] = factories.recommendation(
            tenant,
            fingerprint=name,
            rank=rank,
            title=f"Cache s.{name}",
            rules=[rule],
            patch=patch,
            # Revision 0 has other rules.
            seq=0 if name == "dismissed" else seq,
        )
    other = found["accepted"]
    per_user = {**other.rules[0], "varyBy": ["userName"]}
    change = {"title": "Cache s.accepted per user", "why": ["Each has their own."], "rules": [per_user]}
    patch = [{**other.patch[0], "rule": per_user}]
    other.alternatives = [{**change, "variant": "per-user", "patch": patch, "predicted": other.predicted}]
    other.variant = "shared"
    other.save()
    Mining.objects.update_or_create(tenant_id=demo.tenant, defaults={"state": Mining.State.QUEUED})
    with open_as(demo.owner, home, f"/t/{demo.tenant}/recommendations") as dashboard:
        page: Page = dashboard.page

        def row(name: str) -> Locator:
            return page.locator(f"tr:not(.below):has-text('Cache s.{name}')")

        def open_row(name: str) -> Locator:
            row(name).locator("summary").click()
            return page.locator(f"tr:has-text('Cache s.{name}') + tr.below")

        accepted = open_row("accepted")
        accepted.locator("text=Compared with other ways").wait_for()
        assert faults_of_width(page, "#view") == {}
        expect(page.locator(".callout.warn")).to_contain_text("cannot be accepted: a new search is running.")
        Mining.objects.filter(tenant_id=demo.tenant).delete()
        late = factories.recommendation(tenant, fingerprint="late", rank=9, title="Cache s.late", seq=seq)
        page.reload()
        expect(page.locator(".callout.warn")).to_contain_text("and cannot be accepted: search again")
        # What came since the last visit is marked, and nothing else.
        marked = page.locator("main tr:has(.badge:text('new since your last visit'))")
        expect(marked).to_have_count(1)
        expect(marked).to_contain_text("Cache s.late")
        expect(page.locator("main")).to_contain_text(", 1 new)")
        late.delete()
        # Of other rules: it is dismissed, and neither chosen nor accepted.
        expect(row("dismissed").locator("[name=chosen]")).to_have_count(0)
        dismissed = open_row("dismissed")
        expect(dismissed.locator("button:text('Accept')")).to_have_count(0)
        dismissed.locator("button:text('Dismiss')").click()
        page.fill("dialog input[name=reason]", "It changes too often.")
        page.fill("dialog input[name=until]", "2030-01-02")
        page.click("dialog .primary")
        page.wait_for_selector("text=Earlier (1)")
        expect(row("dismissed")).to_have_count(0)
        expect(page.locator(".callout.warn")).to_have_count(0)
        open_row("drafted").locator("button:text('Make a draft')").click()
        page.wait_for_selector("h1:text('Draft')", state="attached")
        assert [rule["id"] for rule in rules_in_editor(page)][-1] == "drafted"
        expect(page.locator("section:has-text('What it changes') h3")).to_contain_text("drafted")
        dashboard.back()
        expect(row("drafted").locator(".badge >> nth=1")).to_have_text("drafted")
        # Each way has its own buttons, and there are no others.
        open_row("accepted")
        expect(accepted.locator("button:text('Accept')")).to_have_count(2)
        expect(accepted.locator("tr >> button:text('Accept')")).to_have_count(2)
        accepted.locator("summary").click()
        expect(accepted.locator("[aria-label='Rows: all'] td")).to_have_text(["1"])
        accepted.locator("tr:has-text('per user') >> button:text('Accept')").click()
        expect(page.locator("dialog pre")).to_contain_text('"varyBy"')
        expect(page.locator("dialog")).to_contain_text("Predicted by a replay of")
        page.click("dialog .primary")
        page.wait_for_selector("text=1 accepted recommendation. Effects are measured after three whole days.")
        expect(row("accepted")).to_contain_text(demo.owner.email)
        open_row("accepted").locator("text=Its effect is measured after three whole days.").wait_for()
        page.click("text=Earlier (1)")
        expect(open_row("dismissed").locator("dd >> nth=-1")).to_contain_text(
            ": It changes too often. (until Wed, 2 Jan 2030)"
        )
    for recommendation in found.values():
        recommendation.refresh_from_db()
        recommendation.delete()
    states = {name: recommendation.state for name, recommendation in found.items()}
    assert states == {name: name for name in found}
    assert found["accepted"].title == "Cache s.accepted per user"
    assert found["dismissed"].reason == "It changes too often."
    assert str(found["dismissed"].until) == "2030-01-02"
    assert found["accepted"].accepted_seq == Ruleset.objects.get(tenant_id=demo.tenant).seq == seq + 1
    restore_ruleset(tenant_id=UUID(demo.tenant), seq=seq, actor=demo.owner.email)


def test_numbers_and_statements_of_a_digest_lead_to_the_log(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    call_command("digest", "--tenant", demo.tenant, "--day", demo.last_day.isoformat())
    digest = Digest.objects.get(tenant_id=demo.tenant, period=demo.last_day.isoformat())
    (total, *others), name = digest.document["sections"], {"id": "it", "kind": "statement", "href": None}
    digest.document["names"].append({**name, "value": "SELECT"})
    digest.document["sections"] = [{**total, "text": f"{total['text']}\nOne is {{it}}."}, *others]
    digest.save()
    recommended = recommend(Tenant.objects.get(pk=demo.tenant))
    with open_as(demo.owner, home, f"/t/{demo.tenant}/digest") as dashboard:
        page = dashboard.page
        expect(page.locator(".verdict a")).to_contain_text(
            "1 open recommendation: judging by the 1 day replayed, changes of rules could save "
            "about 2.5 min of warehouse time a month"
        )
        link = page.locator("section:has(h2:text('Totals')) .prose a").first
        number = link.inner_text()
        link.click()
        page.wait_for_selector(".ace_editor")
        page.click("main >> button:has-text('Run')")
        page.wait_for_selector("[aria-label=Result] td")
        assert int(number.replace(",", "")) > 100
        assert page.inner_text("[aria-label=Result] td >> nth=0") == number.replace(",", "")
        type_sql(page, EDITOR)
        dashboard.back()
        page.click(".prose a:has(code:text-is('SELECT'))")
        page.wait_for_selector("[aria-label=Statements] tbody tr")
        expect(page.locator("[name=statement]")).to_have_value("SELECT")
    recommended.delete()
    digest.delete()


def test_values_of_a_result_are_exact(demo: Demo, home: str, open_as: Callable[..., Any]) -> None:
    sql = (
        "SELECT * FROM (VALUES"
        " (0.0004, 2026, 331451557290541101, [9007199254740993, 1], {'a': 1.50}, 'x\"1'),"
        " (0.0005, 2027, 331451557290541100, NULL, NULL, NULL)) AS t(a, year, b, list, object, text)"
    )
    with open_as(demo.owner, home, f"/t/{demo.tenant}/sql?sql={quote(sql)}") as dashboard:
        page = dashboard.page
        page.click("main >> button:has-text('Run')")
        cells = page.locator("[aria-label=Result] tbody tr >> nth=0").locator("td")
        expect(cells).to_have_text(
            ["0.0004", "2026", "331451557290541101", "[9007199254740993,1]", '{"a":1.50}', 'x"1']
        )
        # Sorted descending, then ascending.
        page.click("[aria-label=Result] th >> nth=2 >> button")
        expect(cells.nth(2)).to_have_text("331451557290541101")
        page.click("[aria-label=Result] th >> nth=2 >> button")
        expect(cells.nth(2)).to_have_text("331451557290541100")
        with page.expect_download() as download:
            page.click("text=CSV for Excel")
        assert download.value.path().read_bytes().startswith(b"\xef\xbb\xbfa,year,b,list,object,text\r\n")
        # Rows of one query do not stand below another.
        page.click("text=Why were they misses?")
        expect(page.locator("[aria-label=Result]")).to_have_count(0)


def test_queries_are_saved_under_a_name(demo: Demo, own_origin: str, open_as: Callable[..., Any]) -> None:
    with open_as(demo.owner, own_origin, f"/t/{demo.tenant}/sql?sql=SELECT+7") as dashboard:
        page = dashboard.page
        page.on("dialog", lambda dialog: dialog.accept("mine"))
        page.click("text=Save query")
        page.click("text=Who asks most?")
        page.click("text=Save query")
        entry = page.locator("[aria-label=Queries] li:has-text('mine')")
        expect(entry).to_have_count(1)
        page.reload()
        dashboard.settle()
        expect(entry.get_by_text("mine")).to_have_attribute("title", re.compile("userName"))
        entry.get_by_label("Forget mine").click()
        expect(entry).to_have_count(0)


def test_a_long_value_opens_and_an_error_is_marked_at_its_line(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    sql = f"SELECT repeat('long ', 50) AS text,\nnosuch FROM proxy_logs WHERE day = '{demo.last_day}' LIMIT 1"
    with open_as(demo.owner, home, f"/t/{demo.tenant}/sql?sql={quote(sql)}") as dashboard:
        page = dashboard.page
        page.click("main >> button:has-text('Run')")
        expect(page.locator(".ace_gutter-cell.ace_error")).to_have_text("2")
        page.evaluate(
            "sql => document.querySelector('.editor').env.editor.setValue(sql)", sql.replace(",\nnosuch", "")
        )
        page.click("main >> button:has-text('Run')")
        row = page.locator("[aria-label=Result] tbody tr")
        height = row.bounding_box()["height"]
        expect(page.locator(".ace_gutter-cell.ace_error")).to_have_count(0)
        page.click("[aria-label=Result] summary")
        assert row.bounding_box()["height"] > 2 * height


@pytest.mark.parametrize(
    ("part", "text"),
    [(0, "0%"), (1, "<0.1%"), (4_000, "4.0%"), (99_949, "99.9%"), (99_996, ">99.9%"), (100_000, "100%")],
)
def test_only_all_is_a_hundred_percent(
    demo: Demo, home: str, open_as: Callable[..., Any], part: int, text: str
) -> None:
    with open_as(demo.owner, home) as dashboard:
        shown = dashboard.page.evaluate(
            f"import('/static/dashboard/format.js').then((f) => f.ratio({part}, 100000))"
        )
        assert shown == text
