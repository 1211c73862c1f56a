"""The search of the command palette: pages first, then tenants, people, accounts, domains and lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db.models import Q
from django.urls import reverse
from unfold.dataclasses import SearchResult

from accounts.admin.finding import tenants_matching
from accounts.models import Account, Domain, Tenant, User
from tenantadmin.backoffice.navigation import find_pages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    tenants = Tenant.objects.filter(tenants_matching(term)).select_related("account")[:_MAX_FOUND]
    users = User.objects.filter(email__startswith=term.lower())[:_MAX_FOUND]
    accounts = Account.objects.filter(_by_id(term) | Q(name__istartswith=term))[:_MAX_FOUND]
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
                description="User",
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


def _by_id(term: str) -> Q:
    try:
        return Q(pk=UUID(term))
    except ValueError:
        return Q(pk__in=[])
