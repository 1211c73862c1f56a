"""Invalidation markers. Contract: Cache metadata and markers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.urls import reverse
from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from accounts.viewsets import AppViewSet
from rules.markers import (
    NewMarker,
    create_marker,
    delete_marker,
    invalidate_targets,
    list_markers,
    read_marker,
    update_marker,
)
from rules.serializers import (
    InvalidationRequest,
    InvalidationResult,
    MarkerCreate,
    MarkerDocument,
    MarkerParameters,
    MarkerUpdate,
)
from tenantadmin.http.hal import hrefs, item, links
from tenantadmin.http.serializers import ItemList, Success
from tenantadmin.http.streaming import stream_links
from tenantadmin.http.viewsets import operation

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import StreamingHttpResponse
    from rest_framework.request import Request


class MarkerViewSet(AppViewSet):
    """The invalidation markers of a tenant."""

    tag = "Cache"

    @operation(
        summary="List a tenant's invalidation markers, newest first",
        description="The invalidation markers of a tenant.",
        query=MarkerParameters,
        responses={200: ItemList},
    )
    def list_markers(self, request: Request, tenant: UUID) -> StreamingHttpResponse:
        ids = list_markers(
            tenant, status=self.query.get("status"), target_rule_id=self.query.get("targetRuleId")
        )
        href = hrefs("marker", tenant=tenant, marker="id")
        return stream_links(
            self_href=request.get_full_path(),
            parent=reverse("tenant", kwargs={"tenant": tenant}),
            items=(item(marker_id, href(marker_id)) for marker_id in ids),
        )

    @operation(
        summary="Mark a rule's cached results as stale",
        description="The target may be any rule of the ruleset, whatever its action is now: what it cached "
        "while that was `cache` may still be stored.",
        body=MarkerCreate,
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
        new = NewMarker(
            marker_id=self.body["markerId"],
            target_rule_id=self.body["targetRuleId"],
            metadata=self.body.get("metadata", {}),
            invalidated_by=self.body.get("invalidatedBy", {}),
        )
        marker = create_marker(tenant, new)
        location = reverse("marker", kwargs={"tenant": tenant, "marker": new.marker_id})
        return Response(marker, status=201, headers={"Location": location})

    @operation(
        summary="Read a marker", description="One invalidation marker.", responses={200: MarkerDocument}
    )
    def get_marker(self, request: Request, tenant: UUID, marker: str) -> Response:
        return Response(read_marker(tenant, marker))

    @operation(
        summary="Change the notes on a marker",
        description="One invalidation marker.",
        body=MarkerUpdate,
        responses={200: MarkerDocument},
    )
    def replace_marker(self, request: Request, tenant: UUID, marker: str) -> Response:
        return Response(update_marker(tenant, marker, self.body))

    @operation(
        summary="Remove a marker",
        description="The cutoff falls back to the rule's newest remaining unexpired marker.",
        responses={200: Success},
    )
    def delete_marker(self, request: Request, tenant: UUID, marker: str) -> Response:
        removed = delete_marker(tenant, marker)
        message = "The marker is removed." if removed else "There is no such marker."
        return Response({"success": removed, "message": message})

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
        markers = invalidate_targets(tenant, rule_id=rule, statement=self.body["statement"])
        href = hrefs("marker", tenant=tenant, marker="id")
        found = links(
            self_href=request.path,
            parent=reverse("markers", kwargs={"tenant": tenant}),
            items=[item(marker["markerId"], href(marker["markerId"])) for marker in markers],
        )
        return Response({"_links": found, "markers": markers}, status=201)
