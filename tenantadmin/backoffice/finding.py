"""The search of the command palette: pages, tenants, people, accounts, acts, names, lists."""

from __future__ import annotations

import re
import time
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from unfold.dataclasses import SearchResult

from accounts.admin.base import TABS
from accounts.admin.finding import (
    search_accounts,
    search_domains,
    search_fqdns,
    search_people,
    search_tenants,
)
from accounts.admin.names import names_of
from accounts.dashboard import PAGES, in_dashboard
from accounts.models import Tenant, User
from tenantadmin.backoffice.navigation import find_pages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from django.http import HttpRequest, HttpResponse

    from accounts.admin.finding import Search
    from accounts.admin.names import Names
    from accounts.models import Account, Domain, Fqdn


#: Pages of one tenant, person or account beside the tabs: title, and the name of the page.
_AUDIT: Final = ("Audit", "audit")
_OF_TENANT: Final = (
    _AUDIT,
    ("Build days again", "tenant-rebuild"),
    ("Choose the engine of queries", "tenant-engine"),
    ("Take access for a limited time", "tenant-access"),
    ("Add a member or change a role", "tenant-member"),
)
_OF_PERSON: Final = (
    _AUDIT,
    ("Offboard", "person-offboard"),
    ("Reset second factor", "person"),
    ("End sessions", "person"),
)
_OF_ACCOUNT: Final = (_AUDIT, ("Change plan or owners", "account-change"))
#: Before the path of a page of the dashboard.
_DASHBOARD: Final = "dashboard:"
#: A shorter word means no act.
_LEAST: Final = 3
#: Of each such page, at most this many tenants, people or accounts.
_MAX_OF_ACT: Final = 3


def find_for_palette(term: str, app_list: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the results for ``term``, in the form of django-unfold's template.

    Args:
        app_list: the lists of records that the caller may open, as `AdminSite.get_app_list` gives them.
    """
    term = term.replace("\0", "").strip()
    if not term:
        return []
    fqdns = search_fqdns(term).first()
    tenants = names_of(fqdn.tenant_id for fqdn in fqdns)
    return [
        *(
            SearchResult(title=title, description="Page", link=link, icon=icon)
            for title, icon, link in find_pages(term)
        ),
        *map(_of_tenant, search_tenants(term).first()),
        *map(_of_person, search_people(term).first()),
        *map(_of_account, search_accounts(term).first()),
        *_find_acts(term),
        *(_of_fqdn(fqdn, tenants) for fqdn in fqdns),
        *map(_of_domain, search_domains(term).first()),
        *(
            SearchResult(title=model["name"], description="All records", link=model["admin_url"], icon="tag")
            for app in app_list
            for model in app["models"]
            if term.lower() in model["name"].lower()
        ),
    ]


def _find_acts(term: str) -> list[Any]:
    """Return pages of one tenant, person or account: "invalidate retail", "audit olu".

    Without a name, the result is the list to choose from.
    """
    # The page of the tenant itself is found by its name.
    tabs = [(title, page) for _, (title, page) in sorted(TABS.items()) if page != "tenant"]
    pages = [(title, f"{_DASHBOARD}{page}") for title, page in PAGES]
    found: list[Any] = []
    kinds: tuple[tuple[tuple[tuple[str, str], ...], Callable[[str], Search[Any]], str, str], ...] = (
        ((*_OF_TENANT, *tabs, *pages), search_tenants, "a tenant", "accounts_tenant_changelist"),
        (_OF_PERSON, search_people, "a person", "accounts_user_changelist"),
        (_OF_ACCOUNT, search_accounts, "an account", "accounts_account_changelist"),
    )
    words = term.lower().split()
    for acts, search, what, every in kinds:
        find_once = cache(lambda name, search=search: search(name).first())
        for title, page in acts:
            meant = re.findall(r"\w+", title.lower())
            rest = [
                word
                for word in words
                if len(word) < _LEAST or not any(known.startswith(word) for known in meant)
            ]
            if len(rest) == len(words):
                continue
            if rest:
                found += [
                    SearchResult(
                        title=f"{title}: {row}",
                        description=f"Page of {what}",
                        link=_address(page, row),
                        icon="arrow_outward",
                    )
                    for row in find_once(" ".join(rest))[:_MAX_OF_ACT]
                ]
            elif page != "audit":
                # The page of the whole audit is found already.
                found.append(
                    SearchResult(
                        title=title,
                        description=f"Page of {what}. Type its name too, or choose from the list",
                        link=reverse(f"admin:{every}"),
                        icon="arrow_outward",
                    )
                )
    return found


def _address(page: str, row: Tenant | User | Account) -> str:
    if isinstance(row, Tenant) and page.startswith(_DASHBOARD):
        return in_dashboard(row.pk, page.removeprefix(_DASHBOARD))
    if page != "audit":
        return reverse(f"admin:{page}", args=[row.pk])
    if isinstance(row, User):
        filters = {"who": row.email}
    else:
        filters = {"tenant" if isinstance(row, Tenant) else "account": str(row.pk)}
    return f"{reverse('admin:audit')}?{urlencode(filters)}"


def _of_tenant(tenant: Tenant) -> Any:
    return SearchResult(
        title=tenant.name,
        description=f"Tenant of {tenant.account.name}" + (", deleted" if tenant.deleted_at else ""),
        link=reverse("admin:tenant", args=[tenant.pk]),
        icon="database",
    )


def _of_person(user: User) -> Any:
    return SearchResult(
        title=user.email,
        description=f"Person {user.display_name}".rstrip() + ("" if user.is_active else ", inactive"),
        link=reverse("admin:person", args=[user.pk]),
        icon="person",
    )


def _of_account(account: Account) -> Any:
    return SearchResult(
        title=account.name,
        description="Account" + (", deleted" if account.deleted_at else ""),
        link=reverse("admin:account", args=[account.pk]),
        icon="business_center",
    )


def _of_fqdn(fqdn: Fqdn, tenants: Names) -> Any:
    _, tenant = tenants.get(fqdn.tenant_id, ("", "a tenant that is gone"))
    return SearchResult(
        title=fqdn.name,
        description=f"FQDN, {'released by' if fqdn.released_at else 'claimed by'} {tenant}",
        link=f"{reverse('admin:fqdns')}?{urlencode({'q': fqdn.name})}",
        icon="dns",
    )


def _of_domain(domain: Domain) -> Any:
    return SearchResult(
        title=domain.name,
        description=f"Domain of {domain.account.name}" + ("" if domain.verified_at else ", not verified"),
        link=reverse("admin:account", args=[domain.account_id]) + "#domains",
        icon="language",
    )


def palette(request: HttpRequest) -> HttpResponse:
    """Answer the palette instead of django-unfold, which caches results for minutes."""
    started = time.monotonic()
    term = request.GET.get("s", "").strip()
    found = find_for_palette(term, admin.site.get_app_list(request)) if term else []
    context = {
        "term": term,
        "results": found,
        # Variables of django-unfold's template of results.
        "page_counter": 0,
        "page_obj": {"count": len(found)},
        "execution_time": time.monotonic() - started,
    }
    return render(request, "backoffice/palette.html", context)
