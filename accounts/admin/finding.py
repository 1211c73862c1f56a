"""Search tenants by the start of the name, the id, an FQDN, or a member's email."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db.models import Q

from accounts.models import Fqdn, Membership
from accounts.models.tenants import tenant_name_key

if TYPE_CHECKING:
    from django.db.models import QuerySet

#: At most this many tenants of one email are found.
_MAX_OF_ADDRESS: Final = 100


def tenants_matching(term: str) -> Q:
    """Return a filter for tenants whose start of name, id, FQDN or member's email is ``term``.

    Each part uses an index. FQDN and email are looked up in queries of their own.
    """
    term = term.strip()
    ids: list[UUID] = list(_tenants_named(term.lower()))
    with suppress(ValueError):
        ids.append(UUID(term))
    return Q(name_key__startswith=tenant_name_key(term)) | Q(pk__in=ids)


def _tenants_named(text: str) -> QuerySet[Fqdn, UUID] | QuerySet[Membership, UUID]:
    if "@" in text:
        members = Membership.objects.filter(user__email=text).order_by("pk")
        return members.values_list("tenant_id", flat=True)[:_MAX_OF_ADDRESS]
    return Fqdn.objects.filter(name=text).values_list("tenant_id", flat=True)
