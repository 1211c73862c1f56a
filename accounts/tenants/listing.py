"""The tenants of a caller: the list, and the manifest that the Gateway polls.

Contract: Tenant list item, Tenant manifest, Manifest access.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from django.db.models import Count, F, Max, Q, Sum
from django.db.models.functions import Extract

from accounts.access.scopes import Scope
from accounts.models import Tenant
from accounts.models.tenants import fold_name
from accounts.tenants.errors import TenantNotFound
from accounts.tenants.stamps import newest_settled, settled_before
from tenantadmin.lib.core.rendering import strong_etag

if TYPE_CHECKING:
    from accounts.access.principal import Principal
    from accounts.models.querysets import TenantQuerySet
    from tenantadmin.lib.core.timestamps import Timestamp

_CHUNK: Final = 2000


def list_tenants(principal: Principal) -> Iterator[UUID]:
    """Yield the ids of the live tenants in the caller's scope, by name, in bounded memory."""
    live = _listed(principal).live()
    return live.order_by("name", "pk").values_list("pk", flat=True).iterator(chunk_size=_CHUNK)


def require_live_tenant(tenant_id: UUID) -> None:
    """Refuse a tenant that is unknown or deleted.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    if not Tenant.objects.live().filter(pk=tenant_id).exists():
        raise TenantNotFound


@dataclass(frozen=True, slots=True)
class ManifestQuery:
    """The filters of a manifest: changes after ``since``, part of the name, and if tombstones are listed."""

    since: dt.datetime | None = None
    name: str | None = None
    include_deleted: bool = False


class ManifestRow(NamedTuple):
    """A tenant that changed."""

    tenant_id: UUID
    name: str
    modified_at: dt.datetime
    deleted_at: dt.datetime | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest of ``count`` rows, newest first; iterating them reads the database."""

    etag: str
    generated_at: Timestamp
    count: int
    rows: Iterator[ManifestRow]


def read_manifest(principal: Principal, query: ManifestQuery) -> Manifest:
    """Return the manifest of the caller's tenants. Its cost depends on the changes since ``query.since``.

    ``generatedAt`` is the newest ``modifiedAt`` that is earlier than every change of an open transaction.
    """
    settled = settled_before()
    scope = _listed(principal)
    generated_at = newest_settled(scope, "modified_at", settled=settled, since=query.since)
    rows = scope.filter(_wanted(query))
    # Every change increases a row's modified_at, so a new count or sum means a new state.
    state = rows.order_by().aggregate(
        count=Count("pk"), newest=Max("modified_at"), sum=Sum(Extract(F("modified_at"), "epoch"))
    )
    newest_first = rows.order_by("-modified_at", "-pk").values_list("pk", "name", "modified_at", "deleted_at")
    return Manifest(
        etag=strong_etag("manifest", query, generated_at, *state.values()),
        generated_at=generated_at,
        count=state["count"],
        rows=map(ManifestRow._make, newest_first.iterator(chunk_size=_CHUNK)),
    )


def _listed(principal: Principal) -> TenantQuerySet[Tenant]:
    return Tenant.objects.customers().with_scope(Scope.CONFIG_READ, principal.on_listed_tenants)


def _wanted(query: ManifestQuery) -> Q:
    wanted = Q()
    if query.since is not None:
        wanted &= Q(modified_at__gt=query.since)
    if query.name is not None:
        wanted &= Q(name_key__contains=fold_name(query.name))
    if not query.include_deleted:
        wanted &= Q(deleted_at__isnull=True)
    return wanted
