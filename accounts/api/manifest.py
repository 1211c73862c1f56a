"""``GET /config/tenants/manifest``. Contract: Tenant manifest."""
# ruff: noqa: N815  (the members' names are those of the JSON)

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from accounts.permissions import AppView
from accounts.tenants.listing import ManifestQuery, read_manifest
from tenantadmin.http.etags import not_modified
from tenantadmin.http.fields import QueryBooleanField, StrictCharField, TimestampField
from tenantadmin.http.parameters import ETAG, IF_NONE_MATCH
from tenantadmin.http.reading import read_query
from tenantadmin.http.schema import NOT_MODIFIED
from tenantadmin.http.serializers import HalItem, Link, StrictSerializer
from tenantadmin.http.streaming import stream_links

if TYPE_CHECKING:
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request


class ManifestParameters(StrictSerializer):
    since = TimestampField(required=False, help_text="Only entries changed after this moment.")
    name = StrictCharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        max_length=400,
        help_text="A part of the tenant's name, whatever its case.",
    )
    includeDeleted = QueryBooleanField(default=False, help_text="List tombstones too.")


class ManifestEntry(HalItem):
    """A tenant that changed."""

    modifiedAt = serializers.DateTimeField()
    tenantName = serializers.CharField()
    deleted = serializers.BooleanField()


class ManifestLinks(serializers.Serializer[Any]):
    self = Link()
    parent = Link()
    items = ManifestEntry(many=True)


class TenantManifest(serializers.Serializer[Any]):
    """Tenants by their last change, newest first."""

    _links = ManifestLinks()
    generatedAt = serializers.DateTimeField(help_text="Safe as the next `since`: no change is missed.")


class ManifestView(AppView):
    """What changed since the caller last asked."""

    operations: ClassVar = {"GET": "getTenantManifest"}

    @extend_schema(
        tags=["Tenants"],
        summary="List what changed, newest first",
        parameters=[ManifestParameters, IF_NONE_MATCH, ETAG],
        responses={200: TenantManifest, 304: NOT_MODIFIED},
    )
    def get(self, request: Request) -> HttpResponseBase:
        asked = read_query(ManifestParameters, request)
        query = ManifestQuery(asked.get("since"), asked.get("name"), asked["includeDeleted"])
        manifest = read_manifest(self.principal, query)
        return not_modified(request, manifest.etag) or stream_links(
            self_href=request.get_full_path(),
            parent="/config/tenants",
            items=manifest.entries(),
            more={"generatedAt": manifest.generated_at},
            headers={"ETag": manifest.etag},
        )
