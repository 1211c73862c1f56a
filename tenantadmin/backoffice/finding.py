"""Find tenants and people by what a customer says: a name, an id, an FQDN or an email address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db.models import Q
from django.urls import reverse
from unfold.dataclasses import SearchResult

from accounts.models import Account, Fqdn, Tenant, User
from accounts.models.tenants import tenant_name_key

if TYPE_CHECKING:
    from django.http import HttpRequest

#: Results of each kind.
_MAX_FOUND: Final = 10


def find_for_palette(_request: HttpRequest, term: str) -> list[Any]:
    """Return what the command palette lists for ``term``: tenants first, then people and accounts."""
    term = term.strip().replace("\0", "")
    if not term:
        return []
    return [
        *(
            SearchResult(
                title=tenant.name,
                description=f"Tenant of {tenant.account.name}" + (", deleted" if tenant.deleted_at else ""),
                link=reverse("admin:accounts_tenant_change", args=[tenant.pk]),
                icon="database",
            )
            for tenant in find_tenants(term)
        ),
        *(
            SearchResult(
                title=user.email,
                description="User",
                link=reverse("admin:accounts_user_change", args=[user.pk]),
                icon="person",
            )
            for user in User.objects.filter(email__startswith=term.lower())[:_MAX_FOUND]
        ),
        *(
            SearchResult(
                title=account.name,
                description="Account",
                link=reverse("admin:accounts_account_change", args=[account.pk]),
                icon="business_center",
            )
            for account in Account.objects.filter(_by_id(term) | Q(name__istartswith=term))[:_MAX_FOUND]
        ),
    ]


def find_tenants(term: str) -> list[Tenant]:
    """Return tenants by the start of their name, their id, one of their FQDNs, or a member's address."""
    condition = _by_id(term) | Q(name_key__startswith=tenant_name_key(term))
    named = Fqdn.objects.filter(name=term.lower()).values_list("tenant_id", flat=True)
    condition |= Q(pk__in=list(named))
    if "@" in term:
        condition |= Q(memberships__user__email=term.lower())
    rows = Tenant.objects.filter(condition).select_related("account").distinct()
    return list(rows.order_by("name", "id")[:_MAX_FOUND])


def _by_id(term: str) -> Q:
    try:
        return Q(pk=UUID(term))
    except ValueError:
        return Q(pk__in=[])
