"""The list of requests, and invalidation."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db.models.functions import Now
from playwright.sync_api import expect

from logs.models import Partition
from rules.models import Marker
from rules.ruleset import read_ruleset

if TYPE_CHECKING:
    from tests.browser.dashboard.demo import Demo

pytestmark = pytest.mark.browser


def test_what_happened_at_an_hour(demo: Demo, own_origin: str, open_as: Callable[..., Any]) -> None:
    """From a bar of the overview to the slowest request of an hour, and the same hour of the day before."""
    day = Partition.objects.filter(tenant_id=demo.tenant).latest("day").day - timedelta(days=1)
    with open_as(demo.admin, own_origin, f"/t/{demo.tenant}/overview?period={day}") as dashboard:
        page = dashboard.page
        page.click("figure:has([aria-label^='Requests by hour']) summary")
        page.click("figure:has([aria-label^='Requests by hour']) td button:text-is('09:00')")
        page.wait_for_url(f"**from={day}T09**&to={day}T10**")
        expect(page.locator("main")).to_contain_text(f"{day} 09:00:00 UTC to {day} 10:00:00 UTC")
        shown = page.locator(".request summary > :first-child").all_inner_texts()
        assert {text[:13] for text in shown} == {f"{day} 09"}

        page.select_option("select[name=sort]", "-responseTimeMs")
        page.click("main >> text=Show")
        page.wait_for_url(f"**from={day}T09**sort=-responseTimeMs")
        expect(page.locator("main .page-head")).to_contain_text("slowest first")

        page.click("text=Compare with the day before")
        page.wait_for_url("**compare=1**")
        over_time = page.locator("figure:has([aria-label='Requests over time'])")
        over_time.locator("summary").click()
        expect(over_time.locator("th", has_text="All, the day before")).to_be_visible()

        # A drag over several of the sixty bars of an hour.
        expect(over_time.locator(".chart")).to_have_attribute("data-drawn", "true")
        over_time.locator("summary").click()
        over_time.locator("canvas").scroll_into_view_if_needed()
        area = over_time.locator("canvas").bounding_box()
        assert area
        y = area["y"] + area["height"] / 2
        page.mouse.move(area["x"] + area["width"] * 0.3, y)
        page.mouse.down()
        page.mouse.move(area["x"] + area["width"] * 0.6, y, steps=5)
        page.mouse.up()
        page.wait_for_url(re.compile(f"from={day}T09%3A[12].*&to={day}T09%3A[345].*compare=1"))
        page.click("text=Later")
        page.wait_for_url(re.compile(f"from={day}T09%3A[345].*"))
        page.click("text=Whole days")
        page.wait_for_url(f"**from={day}&to={day}&**")


def test_requests_are_filtered_turned_over_and_explained(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.admin, home, f"/t/{demo.tenant}/traffic?status=MISS") as dashboard:
        page = dashboard.page
        rows = page.locator(".request")
        expect(rows).to_have_count(50)
        assert set(page.locator(".request .badge").all_inner_texts()) == {"Miss"}
        first = rows.first.inner_text()
        page.click("text=Next page >> nth=0")
        page.wait_for_selector("h2:has-text('More requests')")
        assert rows.first.inner_text() != first
        page.go_back()
        page.wait_for_selector("h2:text-is('Requests')")
        assert rows.first.inner_text() == first

        page.fill("input[name=statement]", "SALES")
        page.select_option("select[name=status]", "HIT")
        page.click("main >> text=Show")
        page.wait_for_url("**status=HIT&statement=SALES")
        expect(rows.first.locator(".badge")).to_have_text("Hit")
        rows.first.locator("summary").click()
        opened = rows.first.locator(".rule-more")
        expect(opened.locator("dt", has_text="Key")).to_be_visible()
        expect(opened).to_contain_text("decides: HIT or MISS")
        statement = opened.locator("dd .sql").inner_text()
        opened.locator("text=All requests of this statement").click()
        # The address is new before the page is.
        expect(page.locator("select[name=status]")).to_have_value("")
        shown = page.locator(".request summary .sql")
        assert {text.split() == statement.split() for text in shown.all_inner_texts()} == {True}

        rows.first.locator("summary").click()
        rows.first.locator("text=Make a rule for its tables").click()
        page.wait_for_selector("dialog input[name=tables]")
        tables = page.input_value("dialog input[name=tables]")
        assert tables
        assert page.input_value("dialog input[name=name]") == f"Reads of {tables}"
        page.click("dialog >> text=Cancel")

        dashboard.go(f"/t/{demo.tenant}/explain")
        page.click("[aria-label='The newest misses'] tbody a >> nth=0")
        page.wait_for_selector("text=Why a miss")
        # The rules are in their order, and the one that decides is the last that is open.
        rules = page.locator("main .findings >> nth=0")
        places = rules.locator(".row > .muted:first-child").all_inner_texts()
        assert places == [str(number) for number in range(1, len(places) + 1)]
        expect(rules.locator(".badge").last).to_have_text("decides")

        # A statement of a week, by a click anywhere in its row.
        dashboard.go(f"/t/{demo.tenant}/statements")
        page.click("text=7 days")
        # The address is new before the page is.
        page.wait_for_selector("main a[aria-current]:text('7 days')")
        page.select_option("select[name=order]", "requests")
        page.fill("input[name=statement]", "SELECT")
        page.click("main >> text=Show")
        page.wait_for_url("**statement=SELECT**")
        dashboard.settle()
        page.click("tbody tr >> nth=0 >> td >> nth=1", force=True)
        # The column counts what the overview counts, and the others apart.
        dashboard.settle()
        said = page.inner_text("tr:has(details[open]) + tr:has-text('not cached')")
        requests, hits, misses, not_cached, *others = (
            int(number.replace(",", "")) for number in re.findall(r"\b[\d,]+\b", said.split("\nFirst")[0])
        )
        assert requests == hits + misses + not_cached
        cell = page.inner_text("tr:has(details[open]) > [data-label=Requests]")
        assert cell.split("\n") == [f"{requests:,}", *([f"{sum(others):,} not counted"] if others else [])]
        expect(page.locator("tr:has(details[open]) + tr")).to_contain_text(
            re.compile(r"Users: .+ \([\d,]+\).*\. Programs: .+ \([\d,]+\).*\.")
        )
        # Why its last request was answered as it was, is a click away.
        page.click("tr:has(details[open]) + tr >> text=Why")
        page.wait_for_selector("main .badge:text-is('decides')")
        page.go_back()
        page.click("tbody tr >> nth=0 >> td >> nth=1", force=True)
        page.click("text=Make a rule for its tables")
        page.wait_for_selector("dialog input[name=tables]")
        page.click("dialog >> text=Cancel")
        page.wait_for_selector("dialog", state="detached")
        # What the Gateway answers itself reads no tables, and counts apart by its status.
        dashboard.go(f"/t/{demo.tenant}/statements?status=SPOOFED&days=7")
        page.click("tbody tr >> nth=0 >> td >> nth=1", force=True)
        apart = page.locator("tr:has(details[open]) + tr")
        expect(apart).to_contain_text(re.compile(r"Not counted: \d+ Gateway.s answer"))
        number = re.findall(r"Not counted: ([\d,]+) ", apart.inner_text())
        expect(page.locator("tr:has(details[open]) > [data-label=Requests]")).to_contain_text(
            f"{number[0]} not counted"
        )
        assert page.locator("text=Make a rule for its tables").count() == 0
        today = demo.last_day + timedelta(days=1)
        dashboard.go(f"/t/{demo.tenant}/statements?day={today}")
        expect(page.locator("main")).to_contain_text("There are no requests on")
        # There is no link into the future, but one to the last day with requests.
        assert page.get_attribute("[aria-label=Later]", "href") is None
        page.click("main p:has-text('Last day with requests') a")
        page.wait_for_selector("[aria-label=Statements] tbody tr")


def test_a_reader_is_offered_no_rule_and_bad_filters_say_what_is_wrong(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    with open_as(demo.guest, home, f"/t/{demo.tenant}/traffic") as dashboard:
        page = dashboard.page
        page.click(".request summary >> nth=0")
        page.wait_for_selector("text=Link to this request")
        assert page.locator("text=Make a rule for its tables").count() == 0
        dashboard.go(f"/t/{demo.tenant}/invalidate")
        page.wait_for_selector("text=Your role in this tenant does not include the page Invalidate.")
        dashboard.go(f"/t/{uuid.uuid4()}/rules")
        page.wait_for_selector("text=You have no tenant at this address.")
        dashboard.go(f"/t/{demo.tenant}/traffic?rule=absent")
        menu = page.locator("select[name=rule]")
        expect(menu).to_have_value("absent")
        expect(menu.locator("option[value=catalog-pages]")).to_have_text("Product pages")
        page.wait_for_selector("text=No request fits.")
        dashboard.go(f"/t/{demo.tenant}/traffic?from=2020-01-01")
        page.wait_for_selector("main [role=alert]")


def test_results_are_invalidated_by_table_and_by_rule_with_a_reason(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    before = set(Marker.objects.filter(tenant_id=demo.tenant).values_list("marker_id", flat=True))
    made = Marker.objects.filter(tenant_id=demo.tenant).exclude(marker_id__in=before)
    caching = [rule for rule in read_ruleset(demo.tenant).rules if rule["action"] == "cache"]  # type: ignore[arg-type]
    with open_as(demo.admin, home, f"/t/{demo.tenant}/invalidate") as dashboard:
        page = dashboard.page
        page.fill("textarea[name=tables]", "SALES.*")
        page.click("section:has-text('By table') >> button")
        page.wait_for_selector("dialog [aria-label='What it ends'] tbody tr")
        assert not made.exists()
        # One reads from the heading on.
        expect(page.locator("dialog h2")).to_be_focused()
        assert page.locator("dialog").evaluate("it => it.scrollTop") == 0
        # Rules with results of the tables come first, and are chosen.
        rows = page.locator("dialog tbody tr")
        read = [" read SALES.*." in text or " reads SALES.*." in text for text in rows.all_inner_texts()]
        assert read == sorted(read, reverse=True)
        boxes = page.locator("dialog [name=rules]").all()
        ticked = [box.is_checked() for box in boxes]
        assert ticked == sorted(ticked, reverse=True)
        assert not any(is_read and not is_ticked for is_read, is_ticked in zip(read, ticked, strict=True))
        # What is missing stands beside the button, in sight however long the dialog is.
        page.set_viewport_size({"width": 1280, "height": 400})
        for box in boxes:
            box.uncheck()
        expect(page.locator("dialog")).to_contain_text("No rule is ticked, so nothing ends.")
        expect(page.locator("dialog .danger")).to_be_disabled()
        page.locator("dialog").evaluate("it => { it.scrollTop = 0; }")
        for shown in ("text=Choose at least one rule.", "[name=reason]", ".danger"):
            expect(page.locator(f"dialog >> {shown}")).to_be_in_viewport(ratio=1)
        rows.first.locator("[name=rules]").check()
        expect(page.locator("dialog .danger")).to_be_enabled()
        ends = page.inner_text("dialog .stack > p:first-child")
        page.fill("dialog input[name=reason]", "nightly load")
        page.click("dialog .danger")
        page.wait_for_selector(".callout:has-text('Invalidated:')")
        # What ended is what the preview said.
        assert ends.replace("This ends", "That ended") in page.inner_text(".callout:has-text('Invalidated:')")
        by_table = list(made.order_by("target_rule_id"))
        assert len(by_table) == 1
        assert {marker.metadata["reason"] for marker in by_table} == {"nightly load"}
        row = page.locator("[aria-label=Markers] tbody tr:has-text('nightly load')")
        expect(row.first).to_contain_text("tenant-admin@example.org")

        # A marker from before the rules in force has nothing left to end.
        kept = page.locator("[aria-label=Markers] tbody tr:has-text('nightly load')").first
        expect(kept).not_to_contain_text("no more")
        published_at = read_ruleset(demo.tenant).modified_at  # type: ignore[arg-type]
        made.update(invalidated_at=published_at - timedelta(seconds=1), changed_at=Now())
        page.reload()
        expect(kept).to_contain_text("no more: publishing emptied the cache since")

        # A dialog goes with the page that it was opened on.
        page.click("section:has-text('By rule') >> text=Preview")
        page.wait_for_selector("dialog")
        page.evaluate("location.hash += '?show=past'")
        expect(page.locator("dialog")).to_have_count(0)
        page.go_back()
        page.wait_for_selector("main a[aria-current]:text('Active markers')")
        page.select_option("select[name=rule]", caching[0]["id"])
        page.click("section:has-text('By rule') >> text=Preview")
        page.fill("dialog input[name=reason]", "by hand")
        page.click("dialog .danger")
        expect(page.locator("[aria-label=Markers] tbody tr:has-text('by hand')")).to_have_count(1)
        (marker,) = made.filter(metadata__reason="by hand")
        assert marker.target_rule_id == caching[0]["id"]
        # Rules that store nothing are not offered.
        assert page.locator("select[name=rule] option").count() == len(caching)
        page.click("text=Past markers")
        page.wait_for_selector("main a[aria-current]:text('Past markers')")
        assert page.locator("tr:has-text('by hand')").count() == 0
    made.delete()
