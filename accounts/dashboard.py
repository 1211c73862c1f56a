"""Pages of a tenant that are in the dashboard alone: its menu, and what both command palettes offer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse

#: What a page asks of the user's role in the tenant (people.js); empty: every role has it.
Right: TypeAlias = Literal["", "member", "statements", "write", "cache", "people", "owner"]
#: Staff in the dashboard: what the admin site has in its place, and what asks for a platform admin.
_NOT_OF_STAFF: Final[frozenset[Right]] = frozenset({"people", "owner"})
_OF_ADMINS: Final[frozenset[Right]] = frozenset({"write"})


class Page(NamedTuple):
    """A page, or an act on one.

    Attributes:
        path: below the address of the tenant.
        words: other words by which a palette finds it.
        section: of the menu. Acts have none: only palettes lead to them.
    """

    title: str
    path: str
    words: str = ""
    right: Right = ""
    section: str = ""


def _in_menu(section: str, *pages: Page) -> Sequence[Page]:
    return [page._replace(section=section) for page in pages]


PAGES: Final = (
    *_in_menu(
        "Traffic",
        Page("Overview", "overview"),
        Page("Savings", "savings"),
        Page("Statements", "statements", "", "statements"),
        Page("Requests", "traffic", "log", "member"),
        Page("Stale risk and leaks", "reports", "", "statements"),
        Page("Digest", "digest"),
        Page("Alerts", "alerts", "", "statements"),
    ),
    *_in_menu(
        "Rules",
        Page("Rules", "rules"),
        Page("Drafts and replay", "drafts", "publish"),
        Page("Recommendations", "recommendations"),
        Page("Invalidate", "invalidate", "make results stale, purge or clear the cache, marker", "cache"),
        Page("History", "history", "compare and restore rules or configuration"),
    ),
    *_in_menu("Explore", Page("SQL", "sql", "", "member"), Page("Explain", "explain", "a request")),
    *_in_menu(
        "Tenant",
        Page("Configuration", "config"),
        Page("Members", "members", "", "people"),
        Page("Audit", "audit", "events, who did what", "owner"),
    ),
    Page("Invite someone", "members?new=1", "add a colleague, member", "owner"),
    Page("New alert", "alerts?new=1", "mail, webhook, Slack, Teams, PagerDuty", "write"),
    Page("Change the rules", "rules/edit", "edit, TTL", "write"),
    Page("Connect a program", "setup?step=first-request", "address, host, JDBC, dbt, Python"),
)


def pages_for_staff(*, is_admin: bool) -> list[Page]:
    """Return what staff may open of any tenant, some of it only with access to the log."""
    refused = _NOT_OF_STAFF if is_admin else _NOT_OF_STAFF | _OF_ADMINS
    return [page for page in PAGES if page.right not in refused]


def in_dashboard(tenant_id: UUID, page: str, **query: Any) -> str:
    """Return the address that opens a page of a tenant in the dashboard."""
    to = f"{page}?{urlencode(query)}" if query else page
    return f"{reverse('admin:tenant-open', args=[tenant_id])}?{urlencode({'to': to})}"
