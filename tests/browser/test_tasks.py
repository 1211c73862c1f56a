"""The daily tasks of staff in a browser, each with a budget of clicks from Home.

`browsing` fails if a page reports an error, such as a violation of its content policy.
"""

from __future__ import annotations

import datetime as dt
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from playwright.sync_api import expect

from accounts.admin.tabs import TABS
from accounts.models import Domain, Fqdn, Membership, Revision, User
from analytics.models import Build, DayRollup, ReplayRun, TenantHealth
from logs.models import Partition, QuarantinedEntry, QueryRun
from rules.markers import MANUAL, NewMarker, create_marker
from rules.models import Marker, RuleDraft, Ruleset
from rules.write import lint_document, write_ruleset
from tenantadmin.lib.core.request_context import acting_for
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.admin.advice import recommend
from tests.admin.logs import DAY, put_log
from tests.browser.browsing import asked_hosts, browsing
from tosapp.publishing import publish, require_active

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
        self.find_other(said, "/admin/tenants/")
        self.page.wait_for_selector("text=Hits, misses and hit rate by day")

    def find_other(self, said: str, path: str) -> None:
        """Open the palette, and the first result below ``path``."""
        self.search(said)
        self.click(f"#command-results a[href*='{path}']")

    def search(self, said: str) -> None:
        """Open the palette and type."""
        self.click("text=Tenant, person, account, domain")
        # Letters before that would be lost.
        self.page.wait_for_selector("#search-input-command:focus")
        self.page.keyboard.type(said)

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
    # The reader's own time beside UTC takes room.
    with browsing(chromium, timezone_id="Europe/Berlin") as page:
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
        page.wait_for_function("Chart.getChart('days')?.data.labels.length === 28")


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


def replayed(draft: RuleDraft) -> None:
    """Store the result of a replay of a draft, with large numbers."""
    bounds = {"low": 1_234_567, "likely": 2_345_678, "high": 3_456_789}
    counts = {"requests": 9_876_543, "misses": 1, "spentMs": 1, "hitBytes": 1, "hits": bounds}
    counts |= {"savedMs": bounds, "risk": {"low": 0, "high": 1_234}}
    cost = {"hour": 3, "extraMisses": 1_000, "extraMs": 90_000}
    result = {
        "calibration": {"rows": 9_876_543, "share": 0.9, "grade": "poor"},
        "total": counts,
        "rules": [{"ruleId": "orders", **counts}],
        "against": {"total": counts, "rules": []},
        "moved": [{"from": "MISS", "to": "HIT", "count": 1_234_567, "examples": ["log-1"]}],
        "publishCost": {"byHour": [cost] * 24, "best": cost},
        "caveats": ["calibration-poor"],
    }
    ReplayRun.objects.create(
        tenant_id=draft.tenant_id,
        digest=str(draft.pk),
        state="done",
        subject={"draftId": str(draft.pk)},
        rules=list(lint_document({"rules": draft.rules}).normalized or ()),
        first_day=DAY,
        last_day=DAY,
        warmup_days=1,
        result=result,
    )


def test_a_draft_of_earlier_rules_is_rebased_and_published(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    draft = RuleDraft.objects.create(
        tenant=tenant, name="Longer", rules=[{**RULE, "ttlSeconds": 90}], base_seq=1
    )
    write_ruleset(
        tenant_id=tenant.pk,
        document={"rules": [RULE, {**RULE, "id": "items"}]},
        actor="owner@example.org",
    )
    replayed(draft)
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.find("Wareh")
        clicks.open_tab("Rules")
        clicks.click("text=Draft Longer")
        clicks.click("text=Rebase onto revision 3")
        page.wait_for_selector("#check .added >> text=90")
        page.fill("[name=reason]", "ticket 4")
        clicks.click("button.button:has-text('Save')")
        clicks.click("a.button:has-text('Publish')")
        page.fill("[name=reason]", "ticket 4")
        clicks.click("button.button:has-text('Publish')")
        page.wait_for_selector("text=Published as revision 4.")
        assert clicks.count <= 8
    rules = Ruleset.objects.get(pk=tenant.pk).rules
    assert [(rule["id"], rule["ttlSeconds"]) for rule in rules] == [("orders", 90), ("items", 3600)]


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
        page.wait_for_selector("#builds >> text=waits")
        assert clicks.count <= 3
    assert Partition.objects.get().listing_digest == ""


def test_other_terms_are_published(chromium: str, service: str, world: factories.World) -> None:
    publish("# Terms\n\nBe kind.", actor="admin@example.org")
    User.objects.filter(email="member@example.org").update(tos=require_active().hash)
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.click("#nav-sidebar >> text=Terms of service")
        clicks.click("text=Publish other terms")
        page.fill("[name=markdown]", "# Terms\n\nBe *very* kind.")
        page.wait_for_selector("#preview >> text=1 user will be asked again")
        page.wait_for_selector("#preview .rendered em >> text=very")
        page.fill("[name=reason]", "ticket 3")
        clicks.click("button.button:has-text('Publish')")
        page.wait_for_selector("text=Published. 1 user will be asked again.")
        assert clicks.count <= 4
    assert require_active().markdown == "# Terms\n\nBe *very* kind."


def test_a_recommendation_is_accepted(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    rule = {"id": "ads", "conditions": {"isReadOnly": True}, "ttlSeconds": 60}
    found = recommend(
        tenant, rules=[rule], patch=[{"op": "insert", "ruleId": "ads", "before": None, "rule": rule}]
    )
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.find("Wareh")
        clicks.open_tab("Insights")
        page.wait_for_selector("text=+40 to +60, likely +50")
        clicks.click(".recommendation >> text=Accept")
        page.wait_for_selector(".diff .added >> text=ads")
        page.fill("[name=reason]", "saves time")
        clicks.click("button.button:has-text('Accept and publish')")
        page.wait_for_selector("text=Accepted: the rules are at revision 3.")
        assert clicks.count <= 5
    found.refresh_from_db()
    assert (found.state, found.accepted_seq) == ("accepted", 3)


def test_sql_is_run_and_downloaded(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    put_log(tenant, {"userName": "ana"}, {"userName": "bea"})
    Membership.objects.create(
        user=world.platform_admin, tenant=tenant, role="member", ends_at=now() + dt.timedelta(hours=1)
    )
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.find("Wareh")
        clicks.open_tab("SQL")
        page.wait_for_selector(".ace_line >> text=proxy_logs")
        edit = "text => document.querySelector('.django-ace-widget').editor.session.setValue(text)"
        page.evaluate(edit, "SELECT 'day' AS d")
        page.wait_for_selector("#no-day >> text=names no day")
        page.evaluate(edit, f"SELECT userName FROM proxy_logs WHERE day = '{DAY}' ORDER BY ALL")
        expect(page.locator("#no-day")).to_be_hidden()
        clicks.click("button:has-text('Run')")
        page.wait_for_selector("#result >> text=2 rows")
        assert page.locator("#result td").all_inner_texts() == ["ana", "bea"]
        with page.expect_download() as download:
            clicks.click("button:has-text('Download CSV')")
        assert Path(download.value.path()).read_text() == "userName\nana\nbea\n"
        assert clicks.count <= 5
        # Completion works under the content policy.
        page.evaluate(edit, "cacheSt")
        page.evaluate("""() => {
            const editor = document.querySelector('.django-ace-widget').editor;
            editor.navigateFileEnd();
            editor.execCommand('startAutocomplete');
        }""")
        page.wait_for_selector(".ace_autocomplete >> text=cacheStatus")


def test_a_request_is_traced(chromium: str, service: str, world: factories.World, tenant: Tenant) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.find("Wareh")
        clicks.open_tab("Rules")
        clicks.click("text=Trace a request")
        clicks.click("#pasted button:has-text('Trace')")
        page.wait_for_selector("#trace >> text=orders decides: cache")
        assert clicks.count <= 5


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
        heirs = page.locator("form input[type=text][required]:not([name=reason])")
        expect(heirs).to_have_count(2)
        assert [it.input_value() for it in heirs.all()] == ["tenant-admin@example.org"] * 2
        page.fill("[name=reason]", "left the company")
        clicks.click("button.button:has-text('Offboard')")
        page.wait_for_selector("text=Offboarded owner@example.org.")
        assert clicks.count <= 5
    assert not User.objects.get(email="owner@example.org").is_active
    assert Membership.objects.get(user=world.tenant_admin).role == "owner"


def test_plan_domain_and_fqdn(chromium: str, service: str, world: factories.World, tenant: Tenant) -> None:
    domain = Domain.objects.create(account=world.account, name="acme.example", challenge="tenant-admin=abc")
    with signed_in(chromium, service, world) as (page, clicks):
        clicks.find_other("Acme", "/admin/accounts/")
        clicks.click("text=Change plan or owners")
        page.select_option("[name=plan]", "enterprise")
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
        page.wait_for_selector("#claim >> text=fqdn_conflict")
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
        page.wait_for_selector("#timeline >> text=The function pg_sleep is not allowed.")
        assert page.locator("#timeline tbody tr").count() == 1
        assert clicks.count <= 2
        page.fill("[name=name]", "Refused queries")
        clicks.click("text=Save the view")
        page.wait_for_selector("a[aria-current]:has-text('Refused queries')")


def test_by_keyboard_alone(chromium: str, service: str, world: factories.World, tenant: Tenant) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        page.keyboard.press("Control+k")
        page.wait_for_selector("#search-input-command:focus")
        page.keyboard.type("Nobody")
        page.wait_for_selector("#command-results >> text=Nothing matches “Nobody”")
        # There is nothing to open.
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")
        page.keyboard.type("Warehouse")
        page.wait_for_selector("#command-results a[href*='/admin/tenants/']")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{service}/admin/tenants/{tenant.pk}/")
        page.focus(".tabs >> text=Rules")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{service}/admin/tenants/{tenant.pk}/rules/")
        assert clicks.count == 0


def test_a_failed_part_shows_an_error(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    with signed_in(chromium, service, world) as (page, clicks):
        page.route("**/admin/search/**", lambda route: route.fulfill(status=404))
        clicks.search("Wareh")
        page.wait_for_selector("#command-results >> text=This could not be loaded.")
        page.unroute("**/admin/search/**")
        page.keyboard.type("ouse")
        page.wait_for_selector("#command-results a[href*='/admin/tenants/']")
        expect(page.locator("text=This could not be loaded.")).to_have_count(0)
        page.route("**?part=check", lambda route: route.fulfill(status=404))
        page.goto(f"{service}/admin/tenants/{tenant.pk}/rules/")
        page.wait_for_selector("#check >> text=This could not be loaded.")


def test_enter_opens_the_first_result(
    chromium: str, service: str, world: factories.World, tenant: Tenant
) -> None:
    with signed_in(chromium, service, world) as (page, _):
        page.keyboard.press("Control+k")
        page.wait_for_selector("#search-input-command:focus")
        page.keyboard.type("Warehouse")
        page.wait_for_selector("#command-results a[href*='/admin/tenants/']")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{service}/admin/tenants/{tenant.pk}/")


def pages_of(world: factories.World, tenant: Tenant) -> list[str]:
    """Return the addresses of the pages."""
    draft = RuleDraft.objects.create(tenant=tenant, name="Longer", rules=[RULE], base_seq=2)
    replayed(draft)
    names = ("index", "system", "terms-edit", "audit", "people")
    return [
        *(reverse(f"admin:{name}") for name in names),
        *(reverse(f"admin:{name}", args=[tenant.pk]) for _, name in TABS.values()),
        reverse("admin:tenant-rules-trace", args=[tenant.pk]),
        reverse("admin:tenant-draft", args=[tenant.pk, draft.pk]),
        reverse("admin:tenant-draft-publish", args=[tenant.pk, draft.pk]),
        reverse("admin:account", args=[world.account.pk]),
        reverse("admin:person", args=[world.member.pk]),
        f"{reverse('admin:fqdns')}?q=db.acme.example",
    ]


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
        for path in pages:
            page.goto(f"{service}{path}")
            page.wait_for_load_state("load")
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
            page.wait_for_load_state("load")
            for width in (1280, 390):
                page.set_viewport_size({"width": width, "height": 900})
                serious = [
                    f"{it['id']}: {it['nodes'][0]['html'][:150]}"
                    for it in Axe().run(page).response["violations"]
                    if it["impact"] in {"serious", "critical"}
                ]
                if serious:
                    found[address, width] = serious
    assert found == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_window_in_both_color_schemes(
    chromium: str, service: str, world: factories.World, tenant: Tenant, scheme: str
) -> None:
    size = {"width": 390, "height": 844}
    draft = RuleDraft.objects.create(tenant=tenant, name="Longer", rules=[RULE], base_seq=2)
    replayed(draft)
    with signed_in(chromium, service, world, viewport=size, color_scheme=scheme) as (page, _):
        for path in (
            *("", "rules/", "history/?to=2", "markers/", "insights/", "insights/verify/", "sql/"),
            *(
                "builds/",
                "people/",
                "config/",
                f"rules/drafts/{draft.pk}/",
                f"rules/drafts/{draft.pk}/publish/",
            ),
        ):
            page.goto(f"{service}/admin/tenants/{tenant.pk}/{path}")
            page.wait_for_selector(".tabs")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
            is_dark = page.evaluate("document.documentElement.classList.contains('dark')")
            assert is_dark == (scheme == "dark")
        for path in ("audit/", "people/", "fqdns/?q=db.acme.example", f"accounts/{world.account.pk}/"):
            page.goto(f"{service}/admin/{path}")
            page.wait_for_selector(".page .panel")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        page.goto(f"{service}/admin/")
        page.wait_for_selector("#without-owner >> text=Every tenant")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


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
        for path in ("changelist", "change"):
            arguments = [revision.pk] if path == "change" else []
            page.goto(f"{service}{reverse(f'admin:accounts_revision_{path}', args=arguments)}")
            time = page.locator("time[datetime='2026-11-21T02:45:07Z']").first
            assert time.inner_text() == "2026-11-21 02:45:07 UTC"
            assert "3:45" in time.locator("xpath=following-sibling::span").inner_text()


#: The panels of which a part is off to the side, and the days that are broken at a hyphen.
_OFF_TO_THE_SIDE = """() => {
    const nameOf = (it) => it.closest(".panel").querySelector("h2, summary")?.innerText ?? it.id;
    const wide = [...document.querySelectorAll(".page :is(.panel, .wide)")]
        .filter((it) => it.scrollWidth > it.clientWidth)
        .map((it) => `${nameOf(it)}: ${it.scrollWidth} in ${it.clientWidth}`);
    const broken = [];
    for (const cell of document.querySelectorAll(".page .panel :is(th, td):not(:has(code))")) {
        const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
            for (const day of texts.currentNode.data.matchAll(/\\d{4}-\\d\\d-\\d\\d/g)) {
                const range = document.createRange();
                range.setStart(texts.currentNode, day.index);
                range.setEnd(texts.currentNode, day.index + 10);
                if (range.getClientRects().length > 1) broken.push(`${nameOf(cell)}: ${day[0]} is broken`);
            }
        }
    }
    return [...wide, ...broken];
}"""


def test_nothing_of_a_panel_is_off_to_the_side(
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
    create_marker(
        tenant.pk,
        NewMarker(
            marker_id="staff-0123456789ab",
            target_rule_id="orders",
            metadata={"reason": "a backfill of all orders of the year"},
            invalidated_by={"ruleId": "orders", "triggeredBy": MANUAL},
        ),
    )
    Build.objects.create(
        tenant_id=tenant.pk, period=now().date().isoformat(), state="failed", error="no room"
    )
    Domain.objects.create(account=world.account, name="warehouse.acme.example", challenge="tenant-admin=abc")
    rule = {"id": "ads", "conditions": {"isReadOnly": True}, "ttlSeconds": 60}
    recommend(tenant, rules=[rule], patch=[{"op": "insert", "ruleId": "ads", "before": None, "rule": rule}])
    pages = [
        *pages_of(world, tenant),
        reverse("admin:terms"),
        reverse("admin:account-change", args=[world.account.pk]),
        f"{reverse('admin:tenant-invalidate', args=[tenant.pk])}?rule=orders",
    ]
    found: dict[tuple[str, int], list[str]] = {}
    with signed_in(chromium, service, world) as (page, _):
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            for path in pages:
                page.goto(f"{service}{path}")
                page.wait_for_load_state("load")
                page.evaluate(
                    "document.querySelectorAll('.page details').forEach((it) => { it.open = true; })"
                )
                if off := page.evaluate(_OFF_TO_THE_SIDE):
                    found[path, width] = off
    assert found == {}
