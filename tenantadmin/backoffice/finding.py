"""The search of the command palette: pages first, then tenants, people, accounts, domains and lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.urls import reverse
from unfold.dataclasses import SearchResult

from accounts.admin.finding import tenants_matching, with_start_of_id, with_words
from accounts.models import Account, Domain, Tenant, User
from tenantadmin.backoffice.navigation import find_pages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet

#: Maximum number of results of each kind.
_MAX_FOUND: Final = 10


def find_for_palette(term: str, app_list: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the results for ``term``, in the form of django-unfold's template.

    Args:
        app_list: the lists of records that the caller may open, as `AdminSite.get_app_list` gives them.
    """
    term = term.replace("\0", "")
    if not term:
        return []
    lists = [model for app in app_list for model in app["models"] if term.lower() in model["name"].lower()]
    every = Tenant.objects.select_related("account")
    tenants = _first_of(
        every.filter(tenants_matching(term)),
        with_words(every, term, field="name"),
        with_start_of_id(every, term),
    )
    users = _first_of(
        User.objects.filter(email__startswith=term.lower()),
        with_words(User.objects.all(), term, field="display_name"),
    )
    accounts = _first_of(
        Account.objects.filter(name__istartswith=term),
        with_words(Account.objects.all(), term, field="name"),
        with_start_of_id(Account.objects.all(), term),
    )
    domains = Domain.objects.filter(name=term.lower()).select_related("account")[:_MAX_FOUND]
    return [
        *(
            SearchResult(title=title, description="Page", link=link, icon=icon)
            for title, icon, link in find_pages(term)
        ),
        *(
            SearchResult(
                title=tenant.name,
                description=f"Tenant of {tenant.account.name}" + (", deleted" if tenant.deleted_at else ""),
                link=reverse("admin:tenant", args=[tenant.pk]),
                icon="database",
            )
            for tenant in tenants
        ),
        *(
            SearchResult(
                title=user.email,
                description=f"User {user.display_name}".rstrip(),
                link=reverse("admin:person", args=[user.pk]),
                icon="person",
            )
            for user in users
        ),
        *(
            SearchResult(
                title=account.name,
                description="Account",
                link=reverse("admin:account", args=[account.pk]),
                icon="business_center",
            )
            for account in accounts
        ),
        *(
            SearchResult(
                title=domain.name,
                description=f"Domain of {domain.account.name}"
                + ("" if domain.verified_at else ", not verified"),
                link=reverse("admin:account", args=[domain.account_id]) + "#domains",
                icon="language",
            )
            for domain in domains
        ),
        *(
            SearchResult(title=model["name"], description="All records", link=model["admin_url"], icon="tag")
            for model in lists
        ),
    ]


def _first_of(*searches: QuerySet[Any]) -> list[Any]:
    """Return at most `_MAX_FOUND` results, each once. Results of an earlier search are first."""
    found: dict[Any, Any] = {}
    for search in searches:
        # In no order: any order would read all rows that match.
        found |= {row.pk: row for row in search.order_by()[:_MAX_FOUND] if row.pk not in found}
        if len(found) >= _MAX_FOUND:
            break
    return list(found.values())[:_MAX_FOUND]
