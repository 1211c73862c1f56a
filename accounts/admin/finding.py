"""Find tenants by what a customer says: the start of the name, the id, an FQDN, or a member's address."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db.models import Q

from accounts.models import Fqdn, Membership
from accounts.models.tenants import tenant_name_key

if TYPE_CHECKING:
    from django.db.models import QuerySet

#: Tenants of one address that are looked at.
_MAX_OF_ADDRESS: Final = 100


def tenants_matching(term: str) -> Q:
    """Return the filter for the tenants that ``term`` means. FQDN and address are looked up on their own.

    Each part of the filter uses an index: 100,000 names are not read.
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
