"""The search of the command palette: pages, tenants, people, accounts, acts, names, lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from uuid import UUID

from django.contrib import admin
from django.http import JsonResponse
from django.urls import resolve, reverse
from django.utils.http import urlencode

from accounts.admin.base import TABS
from accounts.admin.finding import (
    search_accounts,
    search_domains,
    search_fqdns,
    search_people,
    search_tenants,
)
from accounts.admin.names import names_of
from accounts.dashboard import in_dashboard, pages_for_staff
from accounts.models import Tenant, User
from accounts.models.users import StaffRole
from tenantadmin.backoffice.navigation import find_pages

if TYPE_CHECKING:
    from django.http import HttpRequest

    from accounts.admin.finding import Search
    from accounts.admin.names import Names
    from accounts.models import Account, Domain, Fqdn

    #: Name, address, and what it is.
    Found: TypeAlias = tuple[str, str, str]

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


def find_for_palette(term: str, app_list: Sequence[Mapping[str, Any]], *, role: StaffRole) -> list[Found]:
    """Return what ``term`` means, of what staff of ``role`` may open; all pages if it is empty.

    Args:
        app_list: the lists of records that the caller may open, as `AdminSite.get_app_list` gives them.
    """
    term = term.replace("\0", "").strip()
    pages = [(title, link, "Page") for title, link in find_pages(term) if _is_for(role, link)]
    if not term:
        return pages
    fqdns = search_fqdns(term).first()
    tenants = names_of(fqdn.tenant_id for fqdn in fqdns)
    return [
        *pages,
        *map(_of_tenant, search_tenants(term).first()),
        *map(_of_person, search_people(term).first()),
        *map(_of_account, search_accounts(term).first()),
        *_find_acts(term, role),
        *(_of_fqdn(fqdn, tenants) for fqdn in fqdns),
        *map(_of_domain, search_domains(term).first()),
        *(
            (model["name"], model["admin_url"], "All records")
            for app in app_list
            for model in app["models"]
            if term.lower() in model["name"].lower()
        ),
    ]


def _is_for(role: StaffRole, link: str) -> bool:
    """Return True if staff of ``role`` may see the page at ``link``."""
    view = getattr(resolve(link).func, "view_class", None)
    return role is StaffRole.ADMIN or getattr(view, "needs", role) is role


def _find_acts(term: str, role: StaffRole) -> list[Found]:
    """Return pages of one tenant, person or account: "invalidate retail", "audit olu".

    Without a name, the result is the list to choose from.
    """
    # The page of the tenant itself is found by its name.
    tabs = [(title, page) for _, (title, page) in sorted(TABS.items()) if page != "tenant"]
    shown = pages_for_staff(is_admin=role is StaffRole.ADMIN)
    pages = [(page.title, f"{_DASHBOARD}{page.path}") for page in shown]
    also = {f"{_DASHBOARD}{page.path}": page.words for page in shown}
    found: list[Found] = []
    kinds: tuple[
        tuple[tuple[tuple[str, str], ...], Callable[[str], Search[Any]], str, str, UUID | int], ...
    ] = (
        (
            (*_OF_TENANT, *tabs, *pages),
            search_tenants,
            "a tenant",
            "accounts_tenant_changelist",
            UUID(int=0),
        ),
        (_OF_PERSON, search_people, "a person", "accounts_user_changelist", 0),
        (_OF_ACCOUNT, search_accounts, "an account", "accounts_account_changelist", UUID(int=0)),
    )
    words = term.lower().split()
    for acts, search, what, every, any_key in kinds:
        find_once = cache(lambda name, search=search: search(name).first())
        for title, page in acts:
            meant = re.findall(r"\w+", f"{title} {also.get(page, '')}".lower())
            rest = [
                word
                for word in words
                if len(word) < _LEAST or not any(known.startswith(word) for known in meant)
            ]
            if len(rest) == len(words):
                continue
            is_own = page != "audit" and not page.startswith(_DASHBOARD)
            if is_own and not _is_for(role, reverse(f"admin:{page}", args=[any_key])):
                continue
            if rest:
                found += [
                    (f"{title}: {row}", _address(page, row), f"Page of {what}")
                    for row in find_once(" ".join(rest))[:_MAX_OF_ACT]
                ]
            elif page != "audit":
                # The page of the whole audit is found already.
                choose = f"Page of {what}. Type its name too, or choose from the list"
                found.append((title, reverse(f"admin:{every}"), choose))
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


def _of_tenant(tenant: Tenant) -> Found:
    return (
        tenant.name,
        reverse("admin:tenant", args=[tenant.pk]),
        f"Tenant of {tenant.account.name}" + (", deleted" if tenant.deleted_at else ""),
    )


def _of_person(user: User) -> Found:
    return (
        user.email,
        reverse("admin:person", args=[user.pk]),
        f"Person {user.display_name}".rstrip() + ("" if user.is_active else ", inactive"),
    )


def _of_account(account: Account) -> Found:
    return (
        account.name,
        reverse("admin:account", args=[account.pk]),
        "Account" + (", deleted" if account.deleted_at else ""),
    )


def _of_fqdn(fqdn: Fqdn, tenants: Names) -> Found:
    _, tenant = tenants.get(fqdn.tenant_id, ("", "a tenant that is gone"))
    return (
        fqdn.name,
        f"{reverse('admin:fqdns')}?{urlencode({'q': fqdn.name})}",
        f"FQDN, {'released by' if fqdn.released_at else 'claimed by'} {tenant}",
    )


def _of_domain(domain: Domain) -> Found:
    return (
        domain.name,
        reverse("admin:account", args=[domain.account_id]) + "#domains",
        f"Domain of {domain.account.name}" + ("" if domain.verified_at else ", not verified"),
    )


def palette(request: HttpRequest) -> JsonResponse:
    """Answer `palette.js` with ``{"results": [[name, address, what it is], ...]}``."""
    user: Any = request.user
    found = find_for_palette(
        request.GET.get("s", ""),
        admin.site.get_app_list(request),
        role=cast("StaffRole", user.staff_role),
    )
    return JsonResponse({"results": found})
