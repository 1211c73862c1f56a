"""The tabs of a tenant's pages. A new page is a row here and one in `urls.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from django.urls import reverse

if TYPE_CHECKING:
    from uuid import UUID

#: Title and name of each page, in the order of the tabs.
TABS: Final = (
    ("Overview", "tenant"),
    ("Rules", "tenant-rules"),
    ("History", "tenant-history"),
    ("Markers", "tenant-markers"),
    ("Insights", "tenant-insights"),
    ("SQL", "tenant-sql"),
    ("Builds", "tenant-builds"),
    ("People", "tenant-people"),
    ("Configuration", "tenant-config"),
)


class Tab(NamedTuple):
    """One tab; ``is_current`` if the reader is on its page or below it."""

    title: str
    href: str
    is_current: bool


def tabs_of(tenant_id: UUID, *, path: str) -> list[Tab]:
    """Return the tabs of a tenant's pages for the page at ``path``."""
    found = []
    for title, page in TABS:
        href = reverse(f"admin:{page}", kwargs={"tenant": tenant_id})
        is_current = path == href if page == "tenant" else path.startswith(href)
        found.append(Tab(title, href, is_current))
    return found
