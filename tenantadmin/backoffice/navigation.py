"""The sidebar of the admin site. `UNFOLD` in the settings names these functions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.templatetags.static import static
from django.urls import reverse

if TYPE_CHECKING:
    from django.http import HttpRequest

#: Groups of links: group title, then title, icon and name of each page.
_TASKS: Final = (
    (
        "",
        (
            ("Home", "home", "index"),
            ("Tenants", "database", "accounts_tenant_changelist"),
        ),
    ),
    (
        "Customers",
        (
            ("Accounts", "business_center", "accounts_account_changelist"),
            ("Domains", "language", "accounts_domain_changelist"),
            ("FQDNs", "dns", "fqdns"),
        ),
    ),
    (
        "People",
        (
            ("Access review", "policy", "people"),
            ("Users", "person", "accounts_user_changelist"),
            ("Access tokens", "key", "accounts_personalaccesstoken_changelist"),
        ),
    ),
    (
        "Service",
        (
            ("Audit", "manage_search", "audit"),
            ("Terms of service", "gavel", "terms"),
            ("System", "monitor_heart", "system"),
            # Every list, also those that have no link here.
            ("All records", "view_list", "all_records"),
            ("API and guides", "menu_book", "docs"),
        ),
    ),
)

#: Pages that only the palette finds.
_ACTS: Final = (
    ("New account", "account-new"),
    ("New tenant", "tenant-new"),
    ("Publish new terms", "terms-edit"),
)
#: Other words by which the palette finds a page.
_ALSO: Final = {
    "index": "attention overview start",
    "people": "who may do what staff roles wildcard",
    "accounts_user_changelist": "people persons",
    "accounts_personalaccesstoken_changelist": "pats",
    "accounts_domain_changelist": "verify dns",
    "fqdns": "hosts names who owns",
    "audit": "history events log acts",
    "system": "health servers queues workers versions",
    "all_records": "lists tables database",
    "docs": "documentation help openapi rest",
    "account-new": "create add customer",
    "tenant-new": "create add",
}


def _address(page: str) -> str:
    return reverse(page if page == "docs" else f"admin:{page}")


def find_pages(term: str) -> list[tuple[str, str]]:
    """Return title and address of the pages in which each word of ``term`` begins a word."""
    return [
        (title, _address(name))
        for title, name in (*((title, name) for _, links in _TASKS for title, _, name in links), *_ACTS)
        if all(f" {word}" in f" {title} {_ALSO.get(name, '')}".lower() for word in term.lower().split())
    ]


#: Pages that belong to a link of the sidebar without being below it.
_BELOW: Final = {
    "index": re.compile("/admin/$"),
    "people": re.compile("/admin/people/(revoke/)?$"),
    "accounts_user_changelist": re.compile(r"/admin/people/\d"),
    "accounts_tenant_changelist": re.compile("/admin/tenants/"),
    "accounts_account_changelist": re.compile("/admin/accounts/(new/|[0-9a-f]+-)"),
}


def _is_current(page: str, path: str) -> bool:
    """Return True if the page at ``path`` belongs to the link to ``page``, as the breadcrumbs say."""
    link = _address(page)
    is_below = page not in {"index", "people"} and path.startswith(link)
    return is_below or (page in _BELOW and _BELOW[page].match(path) is not None)


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the groups of links, in the form of django-unfold."""
    return [
        {
            "title": title,
            "separator": bool(title),
            "items": [
                {
                    "title": name,
                    "icon": symbol,
                    "link": _address(page),
                    "active": _is_current(page, request.path),
                }
                for name, symbol, page in links
            ],
        }
        for title, links in _TASKS
    ]


def account_links(_request: HttpRequest) -> list[dict[str, str]]:
    """Return the links of the signed-in user's menu."""
    return [
        {"title": "Ways to sign in", "link": reverse("staff-ways-in")},
        # The page's script names the zone, and changes it.
        {"title": "Times in UTC or my zone", "link": "#zone"},
    ]


def icon(_request: HttpRequest) -> str:
    return static("dashboard/icon.svg")


def tokens(_request: HttpRequest) -> str:
    return static("dashboard/tokens.css")


def palette(_request: HttpRequest) -> str:
    return static("dashboard/palette.css")


def stylesheet(_request: HttpRequest) -> str:
    return static("tenantadmin/admin.css")


def site_context(request: HttpRequest) -> dict[str, Any]:
    """Return the context of the admin site for pages of django-allauth, which use its frame."""
    if not request.path.startswith(("/admin/account/", "/admin/login/link/")):
        return {}
    # Users who must add a second factor first get no sidebar.
    return {**admin.site.each_context(request), "is_nav_sidebar_enabled": admin.site.has_permission(request)}
