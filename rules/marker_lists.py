"""The markers that Gateways poll: one tenant's list, and the feed of all tenants in the caller's scope.

Contract: Cache metadata and markers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import msgspec
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Extract, Now
from msgspec import Meta

from accounts.access.scopes import Scope
from accounts.tenants.listing import require_live_tenant
from accounts.tenants.stamps import newest_settled, settled_before
from rules.markers import MarkerDocument, describe_marker
from rules.models import Marker
from tenantadmin.lib.core.rendering import strong_etag

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator

    from accounts.access.principal import Principal
    from rules.models import MarkerQuerySet
    from tenantadmin.lib.core.timestamps import Timestamp

_CHUNK: Final = 2000


@dataclass(frozen=True, slots=True)
class MarkerFilter:
    """The filters of a list of markers. ``status`` is ``active`` or ``expired``."""

    since: dt.datetime | None = None
    status: str | None = None
    target_rule_id: str | None = None


class FeedMarker(MarkerDocument):
    """A marker of one of the tenants."""

    component = "FeedMarker"

    tenant_id: UUID
    deleted: Annotated[bool, Meta(description="It no longer counts.")]


@dataclass(frozen=True, slots=True)
class MarkerList:
    """A list of markers, newest first; iterating it reads the database.

    ``generated_at`` is a safe ``since`` for the next poll.
    """

    etag: str
    generated_at: Timestamp
    markers: Iterator[Any]


def list_markers(tenant_id: UUID, filters: MarkerFilter) -> MarkerList:
    """Return a tenant's markers that are not removed.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    require_live_tenant(tenant_id)
    scope = Marker.objects.filter(tenant=tenant_id)
    rows = scope.active() if filters.status == "active" else scope.remaining()
    if filters.status == "expired":
        rows = rows.exclude(expires_at__gt=Now())
    if filters.target_rule_id is not None:
        rows = rows.filter(target_rule_id=filters.target_rule_id)
    return _read(scope, rows, filters, _describe)


def read_feed(principal: Principal, *, since: dt.datetime | None) -> MarkerList:
    """Return the markers of all live tenants on which the caller has ``cache-admin``.

    With ``since``, all markers that were created, changed or removed later. Without it, all markers that are
    neither removed nor expired. Each has ``tenantId`` and ``deleted``.
    """
    scope = Marker.objects.filter(
        principal.on_tenants.as_q(Scope.CACHE_ADMIN, tenant="tenant", account="tenant__account"),
        tenant__deleted_at__isnull=True,
    )
    rows = scope.active() if since is None else scope
    return _read(scope, rows, MarkerFilter(since=since), _describe_in_feed)


def _read(
    scope: MarkerQuerySet[Marker], rows: MarkerQuerySet[Marker], filters: MarkerFilter, describe: Any
) -> MarkerList:
    settled = settled_before()
    generated_at = newest_settled(scope, "changed_at", settled=settled, since=filters.since)
    if filters.since is not None:
        rows = rows.filter(changed_at__gt=filters.since)
    # Every change increases a row's changed_at. Expiry changes how many markers are active,
    # and so which are superseded.
    state = rows.order_by().aggregate(
        count=Count("pk"),
        active=Count("pk", filter=Q(expires_at__gt=Now())),
        sum=Sum(Extract(F("changed_at"), "epoch")),
    )
    newest_first = rows.with_superseded().order_by("-invalidated_at", "-pk")
    return MarkerList(
        etag=strong_etag("markers", filters, generated_at, *state.values()),
        generated_at=generated_at,
        markers=map(describe, newest_first.iterator(chunk_size=_CHUNK)),
    )


def _describe(marker: Any) -> MarkerDocument:
    return describe_marker(marker, superseded=marker.superseded)


def _describe_in_feed(marker: Any) -> FeedMarker:
    return FeedMarker(
        **msgspec.structs.asdict(_describe(marker)),
        tenant_id=marker.tenant_id,
        deleted=marker.removed_at is not None,
    )
