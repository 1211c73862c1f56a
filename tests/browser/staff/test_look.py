"""Pages of staff in a browser: keyboard, axe, narrow windows, color schemes, times."""

from __future__ import annotations

import datetime as dt
import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.staticfiles import finders
from django.urls import reverse
from playwright.sync_api import expect

from accounts.access.scopes import ALL_SCOPES
from accounts.models import Account, Domain, PersonalAccessToken, Revision, Tenant
from analytics.models import Build
from rules.write import write_ruleset
from tenantadmin.lib.core.formats import ago
from tenantadmin.lib.core.request_context import acting_for
from tenantadmin.lib.core.timestamps import now
from tests.admin.filling import make_row
from tests.browser.browsing import faults_of_width, resize
from tests.browser.staff.tasks import RULE, pages_of, settle, signed_in, staff_pages
from tosapp.publishing import publish

if TYPE_CHECKING:
    from playwright.sync_api import Route

    from tests import factories


pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

#: Numbers what a page offers to a keyboard, and returns how many there are.
_NUMBER_CONTROLS = """() => {
    const of = ".page :is(a[href], button, input, select, textarea, summary, [tabindex='0'])";
    const offered = [...document.querySelectorAll(of)].filter((it) =>
        it.checkVisibility({visibilityProperty: true}) && it.getClientRects().length && it.tabIndex >= 0
        && !it.disabled && !(it.type === "radio" && !it.checked));
    offered.forEach((it, number) => { it.dataset.number = number; });
    return offered.map((it) => it.outerHTML.slice(0, 120));
}"""
#: The number of what has the focus, and whether one sees that.
_FOCUSED = """() => {
    const it = document.activeElement, style = getComputedStyle(it);
    const isSeen = style.outlineStyle !== "none" || style.boxShadow !== "none" || it.closest(".ace_editor");
    return [it.dataset.number ?? "", Boolean(isSeen)];
}"""


def test_the_keyboard_reaches_all_that_a_page_offers_and_shows_where_it_is(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    missed: dict[str, list[str]] = {}
    pages = pages_of(world, tenant)
    with signed_in(chromium, service, world) as (page, _):
        # The part is read again every 10 s, and its links are others then.
        page.route("**/?part=servers", lambda route: None)  # noqa: ARG005
        page.route("**/?part=servers", lambda route: route.continue_(), times=1)
        for path in pages:
            page.goto(f"{service}{path}")
            settle(page)
            offered = page.evaluate(_NUMBER_CONTROLS)
            # Behind the navigation, which all pages share.
            page.evaluate(
                "() => { const it = document.querySelector('.page'); it.tabIndex = -1; it.focus(); }"
            )
            seen = set()
            for _step in range(len(offered) + 20):
                page.keyboard.press("Tab")
                number, is_seen = page.evaluate(_FOCUSED)
                if number and is_seen:
                    seen.add(int(number))
                if len(seen) == len(offered):
                    break
            if lost := [html for number, html in enumerate(offered) if number not in seen]:
                missed[path] = lost
    assert missed == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    chromium: str, service: str, world: factories.World, tenant: Tenant, scheme: str
) -> None:
    publish("# Terms\n\n1. Be *kind*.", actor="admin@example.org")
    addresses = [*pages_of(world, tenant), reverse("admin:terms"), "/admin/accounts/tenant/"]
    found: dict[tuple[str, int], list[str]] = {}
    with signed_in(chromium, service, world, color_scheme=scheme) as (page, _):
        for address in addresses:
            page.goto(f"{service}{address}")
            settle(page)
            for width in (1280, 390):
                resize(page, width)
                serious = [
                    f"{violation['id']}: {violation['nodes'][0]['html'][:150]}"
                    for violation in Axe().run(page).response["violations"]
                    if violation["impact"] in {"serious", "critical"}
                ]
                if serious:
                    found[address, width] = serious
    assert found == {}


#: Notes which tables are wider than their place after each change of the page, before the change is painted.
_NOTE_WIDE_TABLES = """() => {
    window.wideTables = [];
    new MutationObserver(() => {
        const isWide = (it) => it.scrollWidth > it.clientWidth;
        const found = [...document.querySelectorAll(".page .wide")].filter(isWide);
        window.wideTables.push(...found.map((it) => it.innerText));
    }).observe(document.body, {childList: true, subtree: true});
}"""


def test_tables_that_come_after_the_page_fit_before_they_are_painted(
    chromium: str, service: str, world: factories.World
) -> None:
    with signed_in(chromium, service, world, viewport={"width": 390, "height": 844}) as (page, _):
        held: list[Route] = []
        page.route("**/?part=servers", lambda route: held.append(route))  # noqa: PLW0108  # Playwright asks for its arguments
        with page.expect_request("**/?part=servers"):
            page.goto(f"{service}{reverse('admin:system')}")
        page.evaluate(_NOTE_WIDE_TABLES)
        held[0].continue_()
        expect(page.locator("#servers")).to_contain_text("none answers")
        assert page.locator("#servers .folded").count() > 0
        assert page.evaluate("window.wideTables") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_window_in_both_color_schemes(
    chromium: str, service: str, world: factories.World, tenant: Tenant, scheme: str
) -> None:
    size = {"width": 390, "height": 844}
    with signed_in(chromium, service, world, viewport=size, color_scheme=scheme) as (page, _):
        for path in ("", "builds/", "people/"):
            page.goto(f"{service}/admin/tenants/{tenant.pk}/{path}")
            settle(page)
            assert page.is_visible(".tabs")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
            is_dark = page.evaluate("document.documentElement.classList.contains('dark')")
            assert is_dark == (scheme == "dark")
        for path in ("", "audit/", "people/", "fqdns/?q=db.acme.example", f"accounts/{world.account.pk}/"):
            page.goto(f"{service}/admin/{path}")
            settle(page)
            assert page.is_visible(".page .panel")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


def test_lists_and_records_show_the_time_of_the_reader(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    moment = dt.datetime(2026, 11, 21, 2, 45, 7, tzinfo=dt.UTC)
    revision = Revision.objects.create(
        kind="account",
        account_id=world.account.pk,
        seq=1,
        user="x@example.org",
        action="update",
        document={},
        changed_at=moment,
    )
    with signed_in(chromium, service, world) as (page, _):
        read_at = now()
        page.clock.set_fixed_time(read_at)
        for path in ("changelist", "change"):
            arguments = [revision.pk] if path == "change" else []
            page.goto(f"{service}{reverse(f'admin:accounts_revision_{path}', args=arguments)}")
            time = page.locator("time[datetime='2026-11-21T02:45:07Z']").first
            shown = {
                "changelist": ago(moment, now=read_at, zone=ZoneInfo("Europe/Berlin")),
                "change": "2026-11-21 03:45:07 CET",
            }
            assert time.inner_text() == shown[path]
            both = "2026-11-21 02:45:07 UTC\n2026-11-21 03:45:07 Europe/Berlin"
            assert time.get_attribute("title") == both
        page.click("text=admin@example.org >> nth=0")
        page.click("text=Times in Europe/Berlin: show UTC")
        assert time.inner_text() == "2026-11-21 02:45:07 UTC"
        page.reload()
        assert time.inner_text() == "2026-11-21 02:45:07 UTC"


#: The days that are broken at a hyphen.
_BROKEN_DAYS = """() => {
    const broken = [];
    for (const cell of document.querySelectorAll(".page .panel :is(th, td):not(:has(code))")) {
        const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
            for (const day of texts.currentNode.data.matchAll(/\\d{4}-\\d\\d-\\d\\d/g)) {
                const range = document.createRange();
                range.setStart(texts.currentNode, day.index);
                range.setEnd(texts.currentNode, day.index + 10);
                if (range.getClientRects().length > 1) broken.push(day[0]);
            }
        }
    }
    return broken;
}"""

LONG_NAME = "Reporting warehouse of the northern sales organisation (production, Frankfurt)"

#: How much wider a list is than its place.
_OVERFLOW_OF_LIST = """() => {
    const place = document.querySelector("#result_list").closest(".simplebar-content-wrapper");
    return place.scrollWidth - place.clientWidth;
}"""

#: The cells of a list that are lower than what they hold.
_CUT_CELLS = """() => [...document.querySelectorAll("#result_list td")]
    .filter((it) => it.scrollHeight > it.clientHeight + 2).map((it) => it.innerText)"""


def test_nothing_is_cut_or_off_to_the_side_whatever_the_names(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    actor = "administrator.of.everything@platform.example.org"
    for text in ("Be kind.", "Be very kind."):
        with acting_for("asked for by the legal department in ticket 1234"):
            publish(f"# Terms\n\n{text}", actor=actor)
    write_ruleset(tenant_id=tenant.pk, document={"rules": [RULE]}, actor=actor)
    Revision.objects.create(
        kind="account", account_id=world.account.pk, seq=1, user=actor, action="update", document={}
    )
    Build.objects.create(
        tenant_id=tenant.pk, period=now().date().isoformat(), state="failed", error="no room"
    )
    Domain.objects.create(account=world.account, name="warehouse.acme.example", challenge="tenant-admin=abc")
    known = {"tenant": tenant.pk, "account": world.account.pk, "person": world.member.pk}
    known |= {"domain": "warehouse.acme.example", "kind": "rules", "seq": 1}
    make_row(PersonalAccessToken, tenants=[str(tenant.pk)], scopes=sorted(ALL_SCOPES))
    pages = [
        *staff_pages(known).values(),
        f"{reverse('admin:fqdns')}?q=db.acme.example",
    ]
    Tenant.objects.filter(pk=tenant.pk).update(name=LONG_NAME)
    Account.objects.filter(pk=world.account.pk).update(name=f"Account of the {LONG_NAME}"[:100])
    found: dict[str, Any] = {}
    with signed_in(chromium, service, world) as (page, _):
        for path in pages:
            page.goto(f"{service}{path}")
            settle(page)
            page.evaluate("document.querySelectorAll('.page details').forEach((it) => { it.open = true; })")
            faults = faults_of_width(page, ".page")
            resize(page, 390)
            if broken := page.evaluate(_BROKEN_DAYS):
                faults[0] = broken
            if faults:
                found[path] = faults
            resize(page, 1280)
        for path in ("tenant", "personalaccesstoken", "account", "user", "domain", "fqdn"):
            page.goto(f"{service}/admin/accounts/{path}/")
            settle(page)
            if overflow := page.evaluate(_OVERFLOW_OF_LIST):
                found[path] = overflow
            resize(page, 390)
            if cut := page.evaluate(_CUT_CELLS):
                found[f"{path}, narrow"] = cut
            resize(page, 1280)
    assert not found, found


#: The addresses of what a page waits for before it shows anything.
_WAITED_FOR = """() => performance.getEntriesByType("resource")
    .filter((it) => it.renderBlockingStatus === "blocking").map((it) => it.name)"""


def test_a_page_shows_before_its_scripts_are_there(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    with signed_in(chromium, service, world) as (page, _):
        page.route("**/alpine.js", lambda route: route.fulfill(status=404))
        for path in (
            "/admin/accounts/tenant/",
            f"/admin/tenants/{tenant.pk}/",
        ):
            page.goto(f"{service}{path}")
            files = [name for url in page.evaluate(_WAITED_FOR) if (name := url.partition("/static/")[2])]
            # On a line of 50 kB/s with 400 ms to the service: 1.2 s and three round trips, less than 3 s.
            sizes = {name: len(gzip.compress(Path(finders.find(name) or "").read_bytes())) for name in files}
            assert sum(sizes.values()) < 60_000, sizes
