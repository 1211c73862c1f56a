"""Cache metadata by cache key. Contract: Cache metadata and markers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

import msgspec
from django.urls import reverse
from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response
from rest_framework.serializers import ListSerializer

from accounts.access.scopes import Level, Scope
from accounts.routes import route
from accounts.viewsets import AppViewSet
from rules.cache_metadata import (
    CacheMetadataDocument,
    delete_metadata,
    list_metadata,
    read_metadata,
    require_cache_key,
    write_many,
    write_metadata,
)
from rules.serializers import (
    CacheKeyEntry,
    CacheKeyParameters,
    CacheMetadataBody,
)
from tenantadmin.lib.core.structs import JsonStruct, Success
from tenantadmin.lib.http.hal import ItemList, PageLinks, hrefs, item, page_links
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from rest_framework.request import Request

_MAX_ENTRIES: Final = 1000


class CacheKeyPage(JsonStruct):
    """A page of cache metadata, in the order of the cache keys, each with a link.

    Statements are cut at 1,000 characters.
    """

    links: PageLinks = msgspec.field(name="_links")
    cache_keys: list[CacheMetadataDocument]


class CacheMetadataViewSet(AppViewSet):
    """Cache metadata by cache key."""

    tag = "Cache"
    prefix = "tenants/<uuid:tenant>/cachekeys"

    @route("GET", "/<str:cachekey>", Level.TENANT, Scope.CACHE_ADMIN, name="cache-metadata")
    @operation(
        summary="Read cache metadata",
        description="The metadata of one cache key.",
        responses={200: CacheMetadataDocument},
    )
    def get_cache_metadata(self, request: Request, tenant: UUID, cachekey: str) -> Response:
        return Response(read_metadata(tenant, require_cache_key(cachekey)))

    @route("PUT", "/<str:cachekey>", Level.TENANT, Scope.CACHE_ADMIN)
    @operation(
        summary="Replace cache metadata",
        description="The metadata of one cache key.",
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

    @route("DELETE", "/<str:cachekey>", Level.TENANT, Scope.CACHE_ADMIN)
    @operation(
        summary="Delete cache metadata",
        description="The Gateway removed the result from its cache.",
        responses={200: Success},
    )
    def delete_cache_metadata(self, request: Request, tenant: UUID, cachekey: str) -> Response:
        deleted = delete_metadata(tenant, require_cache_key(cachekey))
        message = "The metadata is deleted." if deleted else "There is no metadata for this cache key."
        return Response(Success(success=deleted, message=message))

    @route("GET", "", Level.TENANT, Scope.CACHE_ADMIN, name="cache-keys")
    @operation(
        summary="List cache metadata by cache key",
        query=CacheKeyParameters,
        responses={200: CacheKeyPage},
    )
    def list_cache_metadata(self, request: Request, tenant: UUID) -> Response:
        page = list_metadata(
            tenant,
            rule_id=self.query.get("ruleId"),
            limit=self.query["limit"],
            cursor=self.query.get("cursor"),
        )
        href = hrefs("cache-metadata", tenant=tenant, cachekey="id")
        hal_links = page_links(
            request,
            parent=reverse("tenant", kwargs={"tenant": tenant}),
            items=[item(document.cache_key, href(document.cache_key)) for document in page.documents],
            cursor=page.cursor,
        )
        return Response(CacheKeyPage(links=hal_links, cache_keys=list(page.documents)))

    @route("PUT", "", Level.TENANT, Scope.CACHE_ADMIN)
    @operation(
        summary="Replace the metadata of many cache keys, all or none",
        body=ListSerializer(child=CacheKeyEntry(), max_length=_MAX_ENTRIES),
        responses={200: ItemList},
    )
    def replace_many_cache_metadata(self, request: Request, tenant: UUID) -> Response:
        """At most 1,000 entries, each with its `cacheKey`."""
        keys = write_many(tenant, self.body)
        href = hrefs("cache-metadata", tenant=tenant, cachekey="id")
        return Response(ItemList(links=self.links("tenant", (item(key, href(key)) for key in keys))))
