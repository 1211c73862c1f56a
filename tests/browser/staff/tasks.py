"""Tasks of staff in a browser: sign in, count clicks, open pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.test import Client
from django.urls import get_resolver, reverse

from accounts.admin.base import TABS
from tests.browser.browsing import browsing, requested_hosts

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from accounts.models import Tenant
    from tests import factories


RULE: dict[str, Any] = {
    "id": "orders",
    "conditions": {"tables": {"containsAny": ["sales.orders"]}, "isReadOnly": True},
    "ttlSeconds": 3600,
}

#: The page's scripts, its fonts and all parts that come after it are there, and what the service says of the
#: rules in an editor.
_HAS_ITS_PARTS = """() => document.readyState === "complete" && document.fonts.status === "loaded"
    && !document.querySelector("[hx-trigger^=load], .htmx-request, #check[aria-busy]")"""


def settle(page: Page) -> None:
    """Wait until the page listens, and nothing of it will move by itself."""
    page.wait_for_function(_HAS_ITS_PARTS)


def wait_for_results(page: Page, said: str) -> None:
    """Wait until the palette has answered all words, and not the first letters alone."""
    page.wait_for_selector(f".palette ul[data-answers='{said}']")


class Clicks:
    """Clicks of one task."""

    def __init__(self, page: Page, service: str) -> None:
        self.page, self.count = page, 0
        page.goto(f"{service}/admin/")
        settle(page)

    def click(self, selector: str) -> None:
        """Click; if another page comes, wait until it listens. What one does before that is lost."""
        self.count += 1
        self.page.click(selector)
        settle(self.page)

    def find(self, said: str) -> None:
        """Open the palette and the first tenant that it finds."""
        self.find_other(said, "/admin/tenants/")
        self.page.wait_for_selector("#acts")

    def find_other(self, said: str, path: str) -> None:
        """Open the palette, and the first result below ``path``."""
        self.search(said)
        wait_for_results(self.page, said)
        self.click(f".palette a[href*='{path}']")

    def open(self, said: str, reason: str, hours: str = "") -> None:
        """Open the page of the dashboard that the palette finds, with access to the log for ``hours``."""
        self.find_other(said, "/open/")
        self.page.fill("[name=reason]", reason)
        self.page.select_option("[name=hours]", hours)
        self.click("button.button:has-text('Open')")
        self.page.wait_for_url("**/dashboard/#/t/**")

    def search(self, said: str) -> None:
        """Open the palette and type."""
        self.click("text=Go to…")
        # Letters before that would be lost.
        self.page.wait_for_selector(".palette input:focus")
        self.page.keyboard.type(said)

    def open_tab(self, name: str) -> None:
        self.click(f".tabs >> text={name}")


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
        hosts = requested_hosts(page)
        yield page, Clicks(page, service)
        assert hosts == {service.removeprefix("http://")}


def staff_pages(known: dict[str, Any]) -> dict[str, str]:
    """Return the path of each staff page by name, if its address names nothing that is not in ``known``."""
    found = {}
    names = get_resolver("tenantadmin.backoffice.urls").reverse_dict
    for name in (key for key in names if isinstance(key, str)):
        parameters = names.getlist(name)[0][0][0][1]
        if known.keys() >= set(parameters):
            found[name] = reverse(
                f"admin:{name}", kwargs={parameter: known[parameter] for parameter in parameters}
            )
    pages = {name: path for name, path in found.items() if path.endswith("/")}
    # Without a challenge the page goes to the dashboard for one, and comes back while a test looks at it.
    pages["tenant-open"] += f"?challenge={'c' * 43}"
    return pages


def pages_of(world: factories.World, tenant: Tenant) -> list[str]:
    """Return the addresses of the pages."""
    names = ("index", "system", "terms-edit", "audit", "people")
    return [
        *(reverse(f"admin:{name}") for name in names),
        *(reverse(f"admin:{name}", args=[tenant.pk]) for _, name in TABS.values()),
        reverse("admin:account", args=[world.account.pk]),
        reverse("admin:person", args=[world.member.pk]),
        f"{reverse('admin:fqdns')}?q=db.acme.example",
    ]
