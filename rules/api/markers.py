"""Invalidation markers. Contract: Cache metadata and markers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import msgspec
from django.db import transaction
from django.urls import reverse
from drf_spectacular.utils import OpenApiExample
from msgspec import Meta
from rest_framework.response import Response

from accounts.access.scopes import Level, Scope
from accounts.events import record_event
from accounts.models.events import EventKind
from accounts.routes import route
from accounts.viewsets import AppViewSet
from rules.marker_lists import FeedMarker, MarkerFilter, list_markers, read_feed
from rules.markers import (
    MarkerDocument,
    NewMarker,
    create_marker,
    delete_marker,
    invalidate_targets,
    read_marker,
    update_marker,
)
from rules.serializers import (
    FeedParameters,
    InvalidationRequest,
    MarkerCreate,
    MarkerParameters,
    MarkerUpdate,
    TableInvalidationRequest,
)
from rules.table_invalidation import invalidate_tables
from tenantadmin.lib.core.structs import JsonStruct, Success
from tenantadmin.lib.core.timestamps import Timestamp
from tenantadmin.lib.http.budgets import LINT
from tenantadmin.lib.http.hal import (
    ETAG,
    IF_NONE_MATCH,
    LOCATION,
    HalLinks,
    PageLinks,
    hrefs,
    item,
    links,
    not_modified,
    page_links,
)
from tenantadmin.lib.http.schema import NOT_MODIFIED
from tenantadmin.lib.http.streaming import stream_documents
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request


class MarkerSummary(JsonStruct):
    """Markers, newest first, each with a link. Statements are cut at 1,000 characters."""

    links: PageLinks = msgspec.field(name="_links")
    markers: list[MarkerDocument]
    generated_at: Annotated[Timestamp, Meta(description="A safe `since` for the next request.")]


class MarkerFeed(JsonStruct):
    """Markers of all tenants in the caller's scope, newest first, each with a link.

    Statements are cut at 1,000 characters.
    """

    links: PageLinks = msgspec.field(name="_links")
    markers: list[FeedMarker]
    generated_at: Annotated[Timestamp, Meta(description="A safe `since` for the next request.")]


class InvalidationResult(JsonStruct):
    """The markers of one cross-rule invalidation."""

    links: HalLinks = msgspec.field(name="_links")
    markers: list[MarkerDocument]


class MarkerViewSet(AppViewSet):
    """The invalidation markers of a tenant."""

    tag = "Cache"

    @route(
        "GET", "tenants/<uuid:tenant>/invalidation-markers", Level.TENANT, Scope.CACHE_ADMIN, name="markers"
    )
    @operation(
        summary="List a tenant's invalidation markers, newest first",
        description="The invalidation markers of a tenant.",
        query=MarkerParameters,
        headers=[IF_NONE_MATCH, ETAG],
        responses={200: MarkerSummary, 304: NOT_MODIFIED},
    )
    def list_markers(self, request: Request, tenant: UUID) -> HttpResponseBase:
        listing = list_markers(tenant, MarkerFilter(**self.query))
        href = hrefs("marker", tenant=tenant, marker="id")
        parent = reverse("tenant", kwargs={"tenant": tenant})
        return not_modified(request, listing.etag) or stream_documents(
            MarkerSummary(
                links=page_links(request, parent=parent, items=(), cursor=listing.cursor),
                markers=[],
                generated_at=listing.generated_at,
            ),
            "markers",
            ((item(marker.marker_id, href(marker.marker_id)), marker) for marker in listing.markers),
            headers={"ETag": listing.etag},
        )

    @route(
        "GET",
        "config/invalidation-markers",
        Level.SERVICE,
        Scope.CACHE_ADMIN,
        notes="lists the markers of tenants on which the PAT has the scope",
        name="marker-feed",
    )
    @operation(
        summary="Poll the invalidation markers of all tenants",
        description="The one feed for a Gateway: all markers that were made, changed or deleted since the "
        "caller last asked. Without `since`: markers that are neither deleted nor expired.",
        query=FeedParameters,
        headers=[IF_NONE_MATCH, ETAG],
        responses={200: MarkerFeed, 304: NOT_MODIFIED},
    )
    def poll_markers(self, request: Request) -> HttpResponseBase:
        feed = read_feed(self.principal, MarkerFilter(**self.query))
        href_of = cache(lambda tenant: hrefs("marker", tenant=tenant, marker="id"))
        return not_modified(request, feed.etag) or stream_documents(
            MarkerFeed(
                links=page_links(request, parent=reverse("contract"), items=(), cursor=feed.cursor),
                markers=[],
                generated_at=feed.generated_at,
            ),
            "markers",
            (
                (item(marker.marker_id, href_of(marker.tenant_id)(marker.marker_id)), marker)
                for marker in feed.markers
            ),
            headers={"ETag": feed.etag},
        )

    @route("POST", "tenants/<uuid:tenant>/invalidation-markers", Level.TENANT, Scope.CACHE_ADMIN)
    @operation(
        summary="Mark a rule's cached results as stale",
        description="The target may be any rule of the ruleset, whatever its action is now: what it cached "
        "while that was `cache` may still be stored.",
        body=MarkerCreate,
        headers=[LOCATION],
        responses={201: MarkerDocument},
        examples=[
            OpenApiExample(
                "By hand",
                value={
                    "markerId": "backfill-2026-11-21",
                    "targetRuleId": "orders",
                    "metadata": {"reason": "orders were loaded again"},
                },
                request_only=True,
            )
        ],
    )
    def create_marker(self, request: Request, tenant: UUID) -> Response:
        new = NewMarker(**self.body)
        with self._recorded("marker.created", tenant) as after:
            marker = create_marker(tenant, new, actor=self.principal.email)
            after |= {"markers": [new.marker_id], "rules": [new.target_rule_id]}
        location = reverse("marker", kwargs={"tenant": tenant, "marker": new.marker_id})
        return Response(marker, status=201, headers={"Location": location})

    @route(
        "GET",
        "tenants/<uuid:tenant>/invalidation-markers/<str:marker>",
        Level.TENANT,
        Scope.CACHE_ADMIN,
        name="marker",
    )
    @operation(
        summary="Read a marker", description="One invalidation marker.", responses={200: MarkerDocument}
    )
    def get_marker(self, request: Request, tenant: UUID, marker: str) -> Response:
        return Response(read_marker(tenant, marker))

    @route("PUT", "tenants/<uuid:tenant>/invalidation-markers/<str:marker>", Level.TENANT, Scope.CACHE_ADMIN)
    @operation(
        summary="Change the notes on a marker",
        description="One invalidation marker.",
        body=MarkerUpdate,
        responses={200: MarkerDocument},
    )
    def replace_marker(self, request: Request, tenant: UUID, marker: str) -> Response:
        return Response(update_marker(tenant, marker, self.body))

    @route(
        "DELETE", "tenants/<uuid:tenant>/invalidation-markers/<str:marker>", Level.TENANT, Scope.CACHE_ADMIN
    )
    @operation(
        summary="Remove a marker",
        description="The cutoff falls back to the rule's newest remaining unexpired marker.",
        responses={200: Success},
    )
    def delete_marker(self, request: Request, tenant: UUID, marker: str) -> Response:
        with self._recorded("marker.removed", tenant) as after:
            removed = delete_marker(tenant, marker)
            after["markers"] = [marker] if removed else []
        message = "The marker is removed." if removed else "There is no such marker."
        return Response(Success(success=removed, message=message))

    @route(
        "POST",
        "tenants/<uuid:tenant>/rules/<str:rule>/invalidations",
        Level.TENANT,
        Scope.CACHE_ADMIN,
        name="invalidations",
    )
    @operation(
        summary="Record that a rule fired: one marker for each rule that it invalidates",
        description="The Gateway's one call when a rule with ``invalidateRules`` has fired.",
        body=InvalidationRequest,
        responses={201: InvalidationResult},
        examples=[
            OpenApiExample(
                "A statement", value={"statement": "UPDATE sales.orders SET open = false"}, request_only=True
            )
        ],
    )
    def invalidate_rules(self, request: Request, tenant: UUID, rule: str) -> Response:
        markers = invalidate_targets(
            tenant, rule_id=rule, statement=self.body["statement"], actor=self.principal.email
        )
        return _invalidation(request, tenant, markers)

    @route(
        "POST",
        "tenants/<uuid:tenant>/invalidations",
        Level.TENANT,
        Scope.CACHE_ADMIN,
        name="table-invalidations",
    )
    @operation(
        summary="Mark the cached results of tables as stale",
        budget=LINT,
        body=TableInvalidationRequest,
        responses={201: InvalidationResult},
        examples=[
            OpenApiExample(
                "Tables that were loaded",
                value={"tables": ["sales.orders", "sales.items"], "reason": "nightly load"},
                request_only=True,
            )
        ],
    )
    def invalidate_tables(self, request: Request, tenant: UUID) -> Response:
        """One marker on each enabled cache rule that can decide a statement which reads such a table.

        With `ruleIds`, only on these of them. All or none. Without such a rule, no marker is made.
        """
        with self._recorded("marker.created", tenant) as after:
            markers = invalidate_tables(
                tenant,
                tables=self.body["tables"],
                reason=self.body.get("reason"),
                actor=self.principal.email,
                only=self.body.get("ruleIds"),
            )
            after |= {
                "markers": [marker.marker_id for marker in markers],
                "rules": [marker.target_rule_id for marker in markers],
                "tables": self.body["tables"],
            }
        return _invalidation(request, tenant, markers)

    @contextmanager
    def _recorded(self, act: str, tenant: UUID) -> Iterator[dict[str, Any]]:
        """Record an event of what staff do in the dashboard, with their reason; the block fills ``after``.

        Others leave no event, because markers change with the Gateway's traffic.
        """
        after: dict[str, Any] = {"act": act}
        with transaction.atomic():
            yield after
            if self.principal.claims.is_staff and after["markers"]:
                record_event(
                    EventKind.STAFF_ACTED,
                    actor=self.principal.email,
                    subject=str(tenant),
                    tenant_id=tenant,
                    after=after,
                )


def _invalidation(request: Request, tenant: UUID, markers: list[MarkerDocument]) -> Response:
    href = hrefs("marker", tenant=tenant, marker="id")
    hal_links = links(
        self_href=request.path,
        parent=reverse("markers", kwargs={"tenant": tenant}),
        items=[item(marker.marker_id, href(marker.marker_id)) for marker in markers],
    )
    return Response(InvalidationResult(links=hal_links, markers=markers), status=201)
