"""The markers that Gateways poll: one tenant's list, and the feed of all tenants in the caller's scope.

Contract: Cache metadata and markers.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import msgspec
from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Extract, Now
from msgspec import Meta

from accounts.access.scopes import Scope
from accounts.cursors import cut_page, older_than, write_cursor
from accounts.tenants.listing import require_live_tenant
from accounts.tenants.stamps import newest_settled, settled_before
from rules.cache_metadata import with_short_statement
from rules.markers import MarkerDocument, describe_marker
from rules.models import Marker
from tenantadmin.lib.core.rendering import strong_etag

if TYPE_CHECKING:
    from accounts.access.principal import Principal
    from rules.models import MarkerQuerySet
    from tenantadmin.lib.core.timestamps import Timestamp

_CHUNK: Final = 2000


@dataclass(frozen=True, slots=True)
class MarkerFilter:
    """The filters of a list of markers, and its page.

    Attributes:
        status: ``active`` or ``expired``.
        limit: how many markers a page has. None: one page has all.
        cursor: where the page begins, from the page before it.
    """

    since: dt.datetime | None = None
    status: str | None = None
    target_rule_id: str | None = None
    limit: int | None = None
    cursor: str | None = None


class FeedMarker(MarkerDocument):
    """A marker of one of the tenants."""

    component = "FeedMarker"

    tenant_id: UUID
    deleted: Annotated[bool, Meta(description="It no longer counts.")]


@dataclass(frozen=True, slots=True)
class MarkerList:
    """A list of markers or a page of it, newest first; iterating it reads the database.

    Long statements are cut. ``generated_at`` is a safe ``since`` for the next poll. ``cursor`` is None on the
    last page.
    """

    etag: str
    generated_at: Timestamp
    markers: Iterator[Any]
    cursor: str | None


def list_markers(tenant_id: UUID, filters: MarkerFilter) -> MarkerList:
    """Return a tenant's markers that are not removed.

    Raises:
        TenantNotFound: there is no such live tenant.
        BadRequest: the cursor is not from such a list.
    """
    require_live_tenant(tenant_id)
    scope = Marker.objects.filter(tenant=tenant_id)
    rows = scope.active() if filters.status == "active" else scope.remaining()
    if filters.status == "expired":
        rows = rows.exclude(expires_at__gt=Now())
    if filters.target_rule_id is not None:
        rows = rows.filter(target_rule_id=filters.target_rule_id)
    return _read(scope, rows, filters, _describe)


def read_feed(principal: Principal, filters: MarkerFilter) -> MarkerList:
    """Return the markers of all live tenants on which the caller has ``cache-admin``.

    With ``since``, all markers that were created, changed or removed later. Without it, all markers that are
    neither removed nor expired. Each has ``tenantId`` and ``deleted``.

    Raises:
        BadRequest: the cursor is not from such a list.
    """
    scope = Marker.objects.filter(
        principal.on_tenants.as_q(Scope.CACHE_ADMIN, tenant="tenant", account="tenant__account"),
        tenant__deleted_at__isnull=True,
    )
    rows = scope.active() if filters.since is None else scope
    return _read(scope, rows, filters, _describe_in_feed)


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
    newest_first: Any = (
        rows.with_superseded()
        .defer("invalidated_by")
        .annotate(shortened=with_short_statement("invalidated_by"))
        .order_by("-invalidated_at", "-pk")
    )
    if filters.cursor is not None:
        newest_first = older_than(newest_first, filters.cursor, time="invalidated_at")
    cursor = None
    if filters.limit is None:
        found = newest_first.iterator(chunk_size=_CHUNK)
    else:
        found, more = cut_page(newest_first, filters.limit)
        cursor = write_cursor([found[-1].invalidated_at.isoformat(), found[-1].pk]) if more else None
    return MarkerList(
        etag=strong_etag("markers", filters, generated_at, *state.values()),
        generated_at=generated_at,
        markers=map(describe, found),
        cursor=cursor,
    )


def _describe(marker: Any) -> MarkerDocument:
    marker.invalidated_by = marker.shortened
    return describe_marker(marker, superseded=marker.superseded)


def _describe_in_feed(marker: Any) -> FeedMarker:
    return FeedMarker(
        **msgspec.structs.asdict(_describe(marker)),
        tenant_id=marker.tenant_id,
        deleted=marker.removed_at is not None,
    )
