"""Every page that a role is offered works for it, and what it may not do is not offered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from accounts.models import User

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.browser.dashboard.demo import Demo

pytestmark = pytest.mark.browser

READ = [
    "Overview",
    "Statements",
    "Requests",
    "Reports",
    "Digest",
    "Rules",
    "Drafts and replay",
    "Recommendations",
    "History",
    "SQL",
    "Explain",
    "Configuration",
]
ALL = [*READ[: READ.index("History")], "Invalidate", *READ[READ.index("History") :], "Members"]
WRITE = {"Edit", "Make a draft", "New draft", "Save", "Restore", "Save as a draft", "Review and publish"}
WRITE |= {"Preview"}
PEOPLE = {"Invite someone", "Remove"}
CHANGES = WRITE | PEOPLE
#: By role: pages, and the words on buttons and links that change something.
OFFERED = {
    "guest": (READ, set[str]()),
    "member": (READ, set[str]()),
    "admin": (ALL, WRITE),
    "owner": (ALL, CHANGES),
}


@pytest.mark.parametrize("role", OFFERED)
def test_a_role_is_offered_only_its_actions(
    role: str, demo: Demo, home: str, open_as: Callable[..., Any]
) -> None:
    pages, changes = OFFERED[role]
    refused: list[str] = []
    offered: set[str] = set()
    with open_as(getattr(demo, role), home, f"/t/{demo.tenant}/overview") as dashboard:
        page = dashboard.page
        page.on("response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None)
        names = page.locator("nav[aria-label=Pages] a").all_inner_texts()
        assert names == pages
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
        page.click("tr:has-text('unknown@elsewhere.example') >> text=Withdraw")
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
