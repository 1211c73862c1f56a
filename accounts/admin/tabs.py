"""The tabs of a tenant's pages. Each app adds its own in ``<app>/admin/__init__.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from django.urls import reverse

if TYPE_CHECKING:
    from uuid import UUID

#: Title and page name of each tab, by its place.
TABS: Final[dict[int, tuple[str, str]]] = {}


class Tab(NamedTuple):
    """One tab. ``is_current``: the reader is on its page or a page below it."""

    title: str
    href: str
    is_current: bool


def add_tab(place: int, title: str, *, page: str) -> None:
    """Add a tab for the page named ``page``. Tabs are sorted by ``place``, any number that is not taken."""
    TABS[place] = title, page


def tabs_of(tenant_id: UUID, *, path: str) -> list[Tab]:
    """Return the tabs of a tenant, as the page at ``path`` shows them."""
    found = []
    for _, (title, page) in sorted(TABS.items()):
        href = reverse(f"admin:{page}", kwargs={"tenant": tenant_id})
        is_current = path == href if page == "tenant" else path.startswith(href)
        found.append(Tab(title, href, is_current))
    return found
