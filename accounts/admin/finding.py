"""Search tenants by the start of the name, the id, an FQDN or a member's email; others by words and ids."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db.models import Q

from accounts.models import Fqdn, Membership
from accounts.models.tenants import tenant_name_key

if TYPE_CHECKING:
    from django.db.models import QuerySet

#: At most this many tenants of one email are found.
_MAX_OF_ADDRESS: Final = 100
#: The start of an id, as lists show it.
_START_OF_ID: Final = re.compile(r"[0-9a-f]{6,32}")


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


def with_words(rows: QuerySet[Any], term: str, *, field: str) -> QuerySet[Any]:
    """Return the rows in whose field words begin with the words of ``term``, in any order.

    The model has an index of the field's words.
    """
    words = re.findall(r"\w+", term)
    if not words:
        return rows.none()
    query = SearchQuery(" & ".join(f"{word}:*" for word in words), search_type="raw", config="simple")
    found: QuerySet[Any] = rows.annotate(words=SearchVector(field, config="simple")).filter(words=query)
    return found


def with_start_of_id(rows: QuerySet[Any], term: str) -> QuerySet[Any]:
    """Return the rows whose id, a UUID, begins with ``term``: at least 6 digits."""
    digits = term.replace("-", "").lower()
    if not _START_OF_ID.fullmatch(digits):
        return rows.none()
    return rows.filter(pk__range=(UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))))
