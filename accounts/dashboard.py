"""Pages of a tenant that are in the dashboard alone. The admin site leads there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django.urls import reverse

if TYPE_CHECKING:
    from uuid import UUID

#: Title and path of each page that the palette finds.
PAGES: Final = (
    ("Overview", "overview"),
    ("Configuration", "config"),
    ("Drafts: replay and publish", "drafts"),
    ("Explain a request", "explain"),
    ("Invalidate", "invalidate"),
    ("Requests", "traffic"),
    ("Rules", "rules"),
    ("SQL", "sql"),
    ("Statements", "statements"),
    ("Alerts", "alerts"),
    ("Digest", "digest"),
    ("Savings", "savings"),
    ("Stale risk and leaks", "reports"),
    ("Recommendations", "recommendations"),
    ("History: compare and restore rules or configuration", "history"),
)


def in_dashboard(tenant_id: UUID, page: str, **query: Any) -> str:
    """Return the address that opens a page of a tenant in the dashboard."""
    to = f"{page}?{urlencode(query)}" if query else page
    return f"{reverse('admin:tenant-open', args=[tenant_id])}?{urlencode({'to': to})}"
