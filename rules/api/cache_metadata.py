"""What is noted under a cache key. Contract: Cache metadata and markers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from accounts.viewsets import AppViewSet
from rules.cache_metadata import read_metadata, write_metadata
from rules.identifiers import require_cache_key
from rules.serializers import CacheMetadataBody, CacheMetadataDocument
from tenantadmin.http.viewsets import operation

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request


class CacheMetadataViewSet(AppViewSet):
    """Cache metadata by cache key."""

    tag = "Cache"

    @operation(
        summary="Read cache metadata",
        description="What is noted under one cache key.",
        responses={200: CacheMetadataDocument},
    )
    def get_cache_metadata(self, request: Request, tenant: UUID, cachekey: str) -> Response:
        return Response(read_metadata(tenant, require_cache_key(cachekey)))

    @operation(
        summary="Replace cache metadata",
        description="What is noted under one cache key.",
        body=CacheMetadataBody,
        responses={200: CacheMetadataDocument},
        examples=[
            OpenApiExample(
                "A result", value={"ruleId": "orders", "sizeBytes": 20480, "rowCount": 120}, request_only=True
            )
        ],
    )
    def replace_cache_metadata(self, request: Request, tenant: UUID, cachekey: str) -> Response:
        return Response(write_metadata(tenant, require_cache_key(cachekey), self.body))
