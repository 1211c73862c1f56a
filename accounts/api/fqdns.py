"""``/config/fqdns``. Contract: FQDNs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from accounts.billing.fqdns import fqdn_as_json, list_fqdns, read_fqdn
from accounts.permissions import AppView
from accounts.serializers.billing import FqdnDocument
from tenantadmin.http.fields import StrictUuidField
from tenantadmin.http.reading import read_query
from tenantadmin.http.serializers import ItemList, StrictSerializer
from tenantadmin.http.streaming import stream_links

if TYPE_CHECKING:
    from django.http import StreamingHttpResponse
    from rest_framework.request import Request


class FqdnParameters(StrictSerializer):
    tenant = StrictUuidField(required=False, help_text="Only the names of this tenant.")


class FqdnsView(AppView):
    """The host names that tenants of the caller's accounts hold."""

    operations: ClassVar = {"GET": "listFqdns"}

    @extend_schema(
        tags=["Accounts"],
        summary="List held FQDNs, tombstones included",
        parameters=[FqdnParameters],
        responses={200: ItemList},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        tenant_id = read_query(FqdnParameters, request).get("tenant")
        items = list_fqdns(self.principal, tenant_id=tenant_id)
        return stream_links(self_href=request.get_full_path(), parent="/", items=items)


class FqdnView(AppView):
    """One host name."""

    operations: ClassVar = {"GET": "getFqdn"}

    @extend_schema(tags=["Accounts"], summary="Find who holds an FQDN", responses={200: FqdnDocument})
    def get(self, request: Request, fqdn: str) -> Response:
        read_query(None, request)
        return Response(fqdn_as_json(read_fqdn(self.principal, fqdn)))
