"""Invalidation markers. Contract: Cache metadata and markers."""
# ruff: noqa: N815  (the members' names are those of the JSON)

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.response import Response

from accounts.api.schema import HalLinks, ItemList, Success
from accounts.permissions import AppView
from accounts.tenants.listing import tenant_path
from accounts.tenants.schema import IgnoredField
from rules.markers import (
    NewMarker,
    create_marker,
    delete_marker,
    invalidate_targets,
    list_markers,
    markers_path,
    read_marker,
    update_marker,
)
from tenantadmin.http.fields import OneOfField
from tenantadmin.http.hal import item, links, path
from tenantadmin.http.serializers import StrictCharField, StrictSerializer, read_body, read_query
from tenantadmin.http.streaming import stream_links

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import StreamingHttpResponse
    from rest_framework.request import Request

_MARKER_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z"
_RULE_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z"
_MAX_STATEMENT = 1_000_000


class StrictRegexField(serializers.RegexField):
    """Text of one pattern that was sent as text."""

    def __init__(self, regex: str, **options: Any) -> None:
        super().__init__(regex, trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class MarkerMetadata(StrictSerializer):
    reason = StrictCharField(required=False, allow_blank=True, max_length=2000, trim_whitespace=False)


class InvalidatedBy(StrictSerializer):
    """What fired: a rule, a statement, a source."""

    ruleId = StrictRegexField(_RULE_ID, required=False)
    statement = StrictCharField(required=False, max_length=_MAX_STATEMENT, trim_whitespace=False)
    triggeredBy = StrictCharField(required=False, max_length=200)


class MarkerCreate(StrictSerializer):
    """A marker to make; it lives as long as its target rule's TTL."""

    markerId = StrictRegexField(_MARKER_ID)
    targetRuleId = StrictRegexField(_RULE_ID)
    metadata = MarkerMetadata(required=False)
    invalidatedBy = InvalidatedBy(required=False)


class MarkerUpdate(StrictSerializer):
    """What a marker may change; what is derived may be sent back as read."""

    metadata = MarkerMetadata(required=False)
    invalidatedBy = InvalidatedBy(required=False)
    markerId = IgnoredField(required=False)
    targetRuleId = IgnoredField(required=False)
    invalidatedAt = IgnoredField(required=False)
    expiresAt = IgnoredField(required=False)
    ttlSeconds = IgnoredField(required=False)
    createdAt = IgnoredField(required=False)
    superseded = IgnoredField(required=False)


@extend_schema_serializer(component_name="InvalidationMarker")
class MarkerDocument(serializers.Serializer[Any]):
    """An invalidation marker."""

    markerId = serializers.CharField()
    targetRuleId = serializers.CharField()
    metadata = MarkerMetadata()
    invalidatedAt = serializers.DateTimeField()
    expiresAt = serializers.DateTimeField()
    ttlSeconds = serializers.IntegerField(min_value=1)
    invalidatedBy = InvalidatedBy()
    createdAt = serializers.DateTimeField()
    superseded = serializers.BooleanField(help_text="A newer one on the same rule overtook it.")


class MarkerParameters(StrictSerializer):
    status = OneOfField(choices=["active", "expired"], required=False)
    targetRuleId = StrictCharField(required=False, max_length=128)


class InvalidationRequest(StrictSerializer):
    statement = StrictCharField(max_length=_MAX_STATEMENT, trim_whitespace=False)


class InvalidationResult(serializers.Serializer[Any]):
    """The markers of one cross-rule invalidation."""

    _links = HalLinks()
    markers = MarkerDocument(many=True)


class MarkersView(AppView):
    """The invalidation markers of a tenant."""

    operations: ClassVar = {"GET": "listMarkers", "POST": "createMarker"}

    @extend_schema(
        tags=["Cache"],
        summary="List a tenant's invalidation markers, newest first",
        parameters=[MarkerParameters],
        responses={200: ItemList},
    )
    def get(self, request: Request, tenant: UUID) -> StreamingHttpResponse:
        asked = read_query(MarkerParameters, request)
        items = list_markers(tenant, status=asked.get("status"), target_rule_id=asked.get("targetRuleId"))
        return stream_links(self_href=request.get_full_path(), parent=tenant_path(tenant), items=items)

    @extend_schema(
        tags=["Cache"],
        summary="Mark a rule's cached results as stale",
        description="The target may be any rule of the ruleset, whatever its action is now: what it cached "
        "while that was `cache` may still be stored.",
        request=MarkerCreate,
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
    def post(self, request: Request, tenant: UUID) -> Response:
        read_query(None, request)
        body = read_body(MarkerCreate, request)
        new = NewMarker(
            marker_id=body["markerId"],
            target_rule_id=body["targetRuleId"],
            metadata=body.get("metadata", {}),
            invalidated_by=body.get("invalidatedBy", {}),
        )
        marker = create_marker(tenant, new)
        return Response(marker, status=201, headers={"Location": markers_path(tenant, new.marker_id)})


class MarkerView(AppView):
    """One invalidation marker."""

    operations: ClassVar = {"GET": "getMarker", "PUT": "replaceMarker", "DELETE": "deleteMarker"}

    @extend_schema(tags=["Cache"], summary="Read a marker", responses={200: MarkerDocument})
    def get(self, request: Request, tenant: UUID, marker: str) -> Response:
        read_query(None, request)
        return Response(read_marker(tenant, marker))

    @extend_schema(
        tags=["Cache"],
        summary="Change the notes on a marker",
        request=MarkerUpdate,
        responses={200: MarkerDocument},
    )
    def put(self, request: Request, tenant: UUID, marker: str) -> Response:
        read_query(None, request)
        return Response(update_marker(tenant, marker, read_body(MarkerUpdate, request)))

    @extend_schema(
        tags=["Cache"],
        summary="Remove a marker",
        description="The cutoff falls back to the rule's newest remaining unexpired marker.",
        responses={200: Success},
    )
    def delete(self, request: Request, tenant: UUID, marker: str) -> Response:
        read_query(None, request)
        removed = delete_marker(tenant, marker)
        message = "The marker is removed." if removed else "There is no such marker."
        return Response({"success": removed, "message": message})


class InvalidationsView(AppView):
    """The Gateway's one call when a rule with ``invalidateRules`` has fired."""

    operations: ClassVar = {"POST": "invalidateRules"}

    @extend_schema(
        tags=["Cache"],
        summary="Record that a rule fired: one marker for each rule that it invalidates",
        request=InvalidationRequest,
        responses={201: InvalidationResult},
        examples=[
            OpenApiExample(
                "A statement", value={"statement": "UPDATE sales.orders SET open = false"}, request_only=True
            )
        ],
    )
    def post(self, request: Request, tenant: UUID, rule: str) -> Response:
        read_query(None, request)
        statement = read_body(InvalidationRequest, request)["statement"]
        markers = invalidate_targets(tenant, rule_id=rule, statement=statement)
        ids = [marker["markerId"] for marker in markers]
        found = links(
            self_href=path("tenants", str(tenant), "rules", rule, "invalidations"),
            parent=markers_path(tenant),
            items=[item(marker_id, markers_path(tenant, marker_id)) for marker_id in ids],
        )
        return Response({"_links": found, "markers": markers}, status=201)
