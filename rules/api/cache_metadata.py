"""``/tenants/{tenant}/cachekeys/{cachekey}``. Contract: Cache metadata and markers."""
# ruff: noqa: N815  (the members' names are those of the JSON)

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.response import Response

from accounts.permissions import AppView
from rules.api.markers import StrictRegexField
from rules.cache_metadata import read_metadata, write_metadata
from rules.identifiers import require_cache_key
from tenantadmin.http.fields import JsonIntegerField, StrictUuidField
from tenantadmin.http.serializers import (
    StrictCharField,
    StrictSerializer,
    TimestampField,
    read_body,
    read_query,
)

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

_LARGE = 2**53


@extend_schema_serializer(component_name="CacheMetadata")
class CacheMetadataBody(StrictSerializer):
    """What the Gateway notes about a cached result."""

    tenantId = StrictUuidField(required=False)
    cacheKey = StrictCharField(required=False, max_length=256)
    ruleId = StrictRegexField(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")
    queryHash = StrictCharField(required=False, max_length=256)
    statement = StrictCharField(required=False, max_length=1_000_000, trim_whitespace=False)
    sizeBytes = JsonIntegerField(required=False, min_value=0, max_value=_LARGE)
    rowCount = JsonIntegerField(required=False, min_value=0, max_value=_LARGE)
    createdAt = TimestampField(required=False, help_text="Default now.")
    expiresAt = TimestampField(required=False)
    lastAccessedAt = TimestampField(required=False)
    hitCount = JsonIntegerField(required=False, min_value=0, max_value=_LARGE)
    tables = serializers.ListField(child=StrictCharField(max_length=500), required=False, max_length=1000)
    tags = serializers.DictField(child=serializers.JSONField(), required=False)


@extend_schema_serializer(component_name="CacheMetadata")
class CacheMetadataDocument(CacheMetadataBody):
    """Cache metadata as stored."""

    tenantId = StrictUuidField()
    cacheKey = StrictCharField()
    createdAt = TimestampField()


class CacheMetadataView(AppView):
    """What is noted under one cache key."""

    operations: ClassVar = {"GET": "getCacheMetadata", "PUT": "replaceCacheMetadata"}

    @extend_schema(tags=["Cache"], summary="Read cache metadata", responses={200: CacheMetadataDocument})
    def get(self, request: Request, tenant: UUID, cachekey: str) -> Response:
        read_query(None, request)
        return Response(read_metadata(tenant, require_cache_key(cachekey)))

    @extend_schema(
        tags=["Cache"],
        summary="Replace cache metadata",
        request=CacheMetadataBody,
        responses={200: CacheMetadataDocument},
        examples=[
            OpenApiExample(
                "A result", value={"ruleId": "orders", "sizeBytes": 20480, "rowCount": 120}, request_only=True
            )
        ],
    )
    def put(self, request: Request, tenant: UUID, cachekey: str) -> Response:
        read_query(None, request)
        body = read_body(CacheMetadataBody, request)
        return Response(write_metadata(tenant, require_cache_key(cachekey), body))
