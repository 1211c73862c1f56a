"""Every page that a role is offered works for it, and what it may not do is not offered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from playwright.sync_api import expect

from accounts.dashboard import PAGES
from accounts.limited_access import take_access
from accounts.models import PermissionGrant, Tenant, User
from accounts.tenants.lifecycle import delete_tenant
from rules.models import Marker
from tenantadmin.lib.core.request_context import acting_for
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.browser.dashboard.demo import at_both_origins

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.dashboard.demo import Demo

pytestmark = pytest.mark.browser

MENU = [page.title for page in PAGES if page.section]
NOT_READ = {"Invalidate", "Members", "Audit"}
NOT_AUDITED = NOT_READ | {"Statements", "Requests", "Stale risk and leaks", "Alerts", "SQL"}
WRITE = {"Edit", "Edit as JSON", "Add a rule", "New draft", "Save", "Restore", "Keep as a draft"}
WRITE |= {"Review and publish"}
WRITE |= {"Preview", "New alert"}
PEOPLE = {"Invite someone", "Add an auditor", "Remove"}
CHANGES = WRITE | PEOPLE
#: By role: pages of the menu that it does not get, and the words on buttons and links that change something.
OFFERED = {
    "auditor": (NOT_AUDITED, set[str]()),
    "guest": (NOT_READ, set[str]()),
    "member": (NOT_READ, set[str]()),
    "admin": ({"Audit"}, WRITE),
    "owner": (set[str](), CHANGES),
}


@pytest.mark.parametrize("role", OFFERED)
def test_a_role_is_offered_only_its_actions(
    role: str, demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    hidden, changes = OFFERED[role]
    refused: list[str] = []
    offered: set[str] = set()
    with open_as(getattr(demo, role), home, f"/t/{demo.tenant}/overview") as dashboard:
        page = dashboard.page
        page.on("response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None)
        names = page.locator("nav[aria-label=Pages] a").all_inner_texts()
        assert names == [name for name in MENU if name not in hidden]
        for name in names:
            link = page.locator(f"nav[aria-label=Pages] a:has-text('{name}') >> nth=0")
            if link.get_attribute("aria-current") is None:
                # The page before may still be there after the click.
                page.evaluate("document.querySelector('#view').replaceChildren()")
            link.click()
            dashboard.settle()
            page.wait_for_selector("h1")
            if name == "History":
                page.wait_for_selector("h2:has-text('Revision ')")
                page.click("ul[aria-label=Revisions] li:last-child button")
                page.wait_for_selector("h2:has-text('Revision 0')")
            assert page.locator("main [role=alert]").count() == 0, name
            offered |= CHANGES & words(page)
        # No page offers this one to who may not write, but its address can be known.
        dashboard.go(f"/t/{demo.tenant}/rules/edit")
        page.wait_for_selector("h1")
        offered |= CHANGES & words(page)
    assert offered == changes
    # There is no digest yet.
    assert [url for url in refused if "/digests/" not in url] == []


def words(page: Page) -> set[str]:
    return set(page.locator("main .button").all_inner_texts())


@at_both_origins
def test_a_person_is_invited_accepts_is_promoted_and_removed(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    stranger = User.objects.get(email="stranger@elsewhere.example")
    invited = "tr:has-text('stranger@elsewhere.example'):has-text('open')"
    row = "tr:has-text('stranger@elsewhere.example'):has(select)"
    with open_as(demo.owner, home, f"/t/{demo.tenant}/members") as dashboard:
        page = dashboard.page
        page.click("text=Invite someone")
        page.fill("dialog input[name=email]", "member@meridian.example")
        page.click("dialog .primary")
        page.wait_for_selector("dialog [role=alert]")
        page.fill("dialog input[name=email]", "unknown@elsewhere.example")
        page.click("dialog .primary")
        withdraw = page.locator("tr:has-text('unknown@elsewhere.example') >> button:text-is('Withdraw')")
        withdraw.click()
        expect(withdraw).to_have_count(0)
        page.wait_for_selector("tr:has-text('unknown@elsewhere.example'):has-text('withdrawn')")
        page.click("text=Invite someone")
        page.fill("dialog input[name=email]", "stranger@elsewhere.example")
        page.fill("dialog input[name=message]", "Our log is here.")
        page.click("dialog .primary")
        page.wait_for_selector(invited)
        assert page.locator(row).count() == 0
    with open_as(stranger, home, "/invitations") as dashboard:
        page = dashboard.page
        page.wait_for_selector("text=Our log is here.")
        dashboard.go("/")
        page.click("text=Accept")
        page.wait_for_url(f"**/t/{demo.tenant}/overview")
    with open_as(demo.owner, home, f"/t/{demo.tenant}/members") as dashboard:
        page = dashboard.page
        page.wait_for_selector(row)
        page.select_option(f"{row} select", "admin")
        page.wait_for_selector(".notice:has-text('is admin now.')")
        page.reload()
        page.wait_for_selector(row)
        assert page.input_value(f"{row} select") == "admin"
        page.click(f"{row} >> text=Remove")
        page.click("dialog .danger")
        page.wait_for_selector(row, state="detached")


def test_an_owner_gives_an_auditor_the_numbers_without_the_log(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    email = "signs@elsewhere.example"
    row = "[aria-label=Auditors] tr:has-text('signs@elsewhere.example')"
    with open_as(demo.owner, home, "/") as dashboard:
        page = dashboard.page
        # Four clicks from Home.
        page.locator("main").get_by_role("link", name=demo.name).first.click()
        page.get_by_role("link", name="Members").click()
        page.get_by_role("button", name="Add an auditor").click()
        page.fill("dialog input[name=grantee]", email)
        page.fill("dialog input[name=expiresAt]", f"{now():%Y-%m-%d}")
        page.click("dialog .primary")
        page.wait_for_selector(row)
        # The demo’s auditor keeps the grant until an owner ends it.
        assert page.locator("[aria-label=Auditors] tr:has-text('no end date')").count() == 1
        grant = PermissionGrant.objects.get(grantee__email=email)
        assert (grant.permissions, grant.resource_id) == (
            ["analytics:numbers", "config:read"],
            UUID(demo.tenant),
        )
        assert f"{grant.expires_at:%Y-%m-%d %H:%M:%S}" == f"{now():%Y-%m-%d} 23:59:59"
    with open_as(User.objects.get(email=email), home, f"/t/{demo.tenant}/overview") as dashboard:
        page = dashboard.page
        for path in ("overview?period=2026-01-01", f"overview?period={demo.last_day}", "recommendations"):
            dashboard.go(f"/t/{demo.tenant}/{path}")
            assert page.locator("main [role=alert]").count() == 0, path
            assert page.locator("main a[href*='/statements'], main a[href*='/traffic']").count() == 0, path
        dashboard.go(f"/t/{demo.tenant}/statements")
        page.wait_for_selector("text=does not include the page Statements")
    with open_as(demo.owner, home, f"/t/{demo.tenant}/members") as dashboard:
        page = dashboard.page
        page.locator(row).get_by_role("button", name="Remove").click()
        page.click("dialog .danger")
        page.wait_for_selector(row, state="detached")
        # The audit has both, for people and as a file.
        page.get_by_role("link", name="Audit").click()
        acts = page.locator("[aria-label=Audit] tbody tr")
        expect(acts.nth(0)).to_contain_text(f"revoked permissions of {email}")
        expect(acts.nth(1)).to_contain_text(f"gave {email} permissions")
        expect(acts.nth(1)).to_contain_text(
            "may: read totals, savings, recommendations and digests, read rules"
        )
        with page.expect_download() as file:
            page.get_by_role("button", name="Download CSV").click()
        lines = file.value.path().read_text().splitlines()
        assert lines[0] == "at,actor,done,kind,subject,changes,reason,tenantId,accountId,address,requestId"
        assert f",{demo.owner.email},revoked permissions of {email},grant.revoked,{email}," in lines[1]
        page.fill("input[name=actor]", "nobody@example.org")
        page.get_by_role("button", name="Show").click()
        expect(page.locator("main")).to_contain_text("Nothing was done.")
    grant.refresh_from_db()
    assert grant.revoked_at is not None


def test_an_operator_with_a_grant_invalidates_and_sees_no_other_act(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    operator = demo.member
    grant = PermissionGrant.objects.create(
        grantee=operator,
        resource="tenant",
        resource_id=demo.tenant,
        permissions=["cache-admin"],
        granted_by=demo.owner,
    )
    with open_as(operator, home) as dashboard:
        page = dashboard.page
        dashboard.go(f"/t/{demo.tenant}/rules")
        page.wait_for_selector("nav >> text=Invalidate")
        assert not CHANGES & words(page)
        page.click("nav >> text=Invalidate")
        dashboard.settle()
        page.click("section:has-text('By rule') >> text=Preview")
        page.fill("dialog input[name=reason]", "by an operator")
        page.click("dialog .danger")
        page.wait_for_selector("[aria-label=Markers] tr:has-text('by an operator')")
    made = Marker.objects.get(tenant_id=demo.tenant, metadata__reason="by an operator")
    assert made.created_by == operator.email
    made.delete()
    grant.delete()


def test_a_grant_on_the_account_offers_what_one_on_the_tenant_does(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    analyst = factories.make_user("analyst-of-account@example.org")
    grant = PermissionGrant.objects.create(
        grantee=analyst,
        resource="account",
        resource_id=Tenant.objects.get(pk=demo.tenant).account_id,
        permissions=["analytics:read", "config:read"],
    )
    with open_as(analyst, home, f"/t/{demo.tenant}/overview") as dashboard:
        expect(dashboard.page.locator("nav[aria-label=Pages] >> text=Statements")).to_be_visible()
    grant.delete()


def test_access_for_a_limited_time_stands_apart_and_is_taken_away(
    demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    staff, _ = User.objects.get_or_create(email="staff@service.example")
    tenant = Tenant.objects.get(pk=demo.tenant)
    with acting_for("ticket 12"):
        take_access(staff, tenant_id=tenant.pk, hours=2)
    with open_as(demo.owner, home, f"/t/{demo.tenant}/members") as dashboard:
        page = dashboard.page
        row = page.locator("[aria-label='Access for a limited time'] tbody tr")
        expect(row).to_contain_text("ticket 12")
        expect(row).to_contain_text("in 2 hours")
        assert page.locator("[aria-label=Members] tr:has-text('staff@service.example')").count() == 0
        row.locator("text=Remove").click()
        page.click("dialog .danger")
        expect(row).to_have_count(0)
    assert not staff.memberships.exists()


def test_an_owner_restores_a_deleted_tenant(demo: Demo, home: str, open_as: Callable[..., Any]) -> None:
    owner, _ = User.objects.get_or_create(email="regretful@elsewhere.example")
    account = factories.make_account("Regrets", owners=[owner])
    tenant = factories.make_tenant(account, "Given up", owner=owner)
    delete_tenant(tenant_id=tenant.pk, actor=owner.email)
    with open_as(owner, home) as dashboard:
        page = dashboard.page
        page.click("[aria-label='Deleted tenants'] tr:has-text('Given up') >> text=Restore")
        page.click("dialog .primary")
        # The only tenant opens by itself.
        page.wait_for_url(f"**/t/{tenant.pk}/setup")
    assert Tenant.objects.get(pk=tenant.pk).deleted_at is None
    Tenant.objects.filter(pk=tenant.pk).delete()
    account.delete()
