"""The tabs of a tenant's pages. Each app adds its own in ``<app>/admin/__init__.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from django.urls import reverse

if TYPE_CHECKING:
    from uuid import UUID

#: Title and name of each page, by its place in the row of tabs.
TABS: Final[dict[int, tuple[str, str]]] = {}


class Tab(NamedTuple):
    """One tab; ``is_current`` if the reader is on its page or below it."""

    title: str
    href: str
    is_current: bool


def add_tab(place: int, title: str, *, page: str) -> None:
    """Add a tab that leads to the page named ``page``. Places are free numbers; tabs are sorted by them."""
    TABS[place] = title, page


def tabs_of(tenant_id: UUID, *, path: str) -> list[Tab]:
    """Return the tabs of a tenant's pages for the page at ``path``."""
    found = []
    for _, (title, page) in sorted(TABS.items()):
        href = reverse(f"admin:{page}", kwargs={"tenant": tenant_id})
        is_current = path == href if page == "tenant" else path.startswith(href)
        found.append(Tab(title, href, is_current))
    return found
