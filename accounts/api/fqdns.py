"""``/config/fqdns``. Contract: FQDNs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.urls import reverse
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.billing.fqdns import FqdnDocument, fqdn_document, list_fqdns, read_fqdn
from accounts.routes import route
from accounts.serializers.billing import FqdnParameters
from accounts.viewsets import AppViewSet
from tenantadmin.lib.http.hal import ItemList, hrefs, item, links
from tenantadmin.lib.http.streaming import stream_links
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from django.http import StreamingHttpResponse
    from rest_framework.request import Request


class FqdnViewSet(AppViewSet):
    """The host names that tenants hold."""

    tag = "Accounts"
    prefix = "config/fqdns"

    @route("GET", "", Level.SERVICE, Scope.CONFIG_READ, name="fqdns")
    @operation(
        summary="List held FQDNs, tombstones included",
        description="The host names that tenants of the caller's accounts hold.",
        query=FqdnParameters,
        responses={200: ItemList},
    )
    def list_fqdns(self, request: Request) -> StreamingHttpResponse:
        names = list_fqdns(self.principal, tenant_id=self.query.get("tenant"))
        href = hrefs("fqdn", fqdn="fqdn")
        return stream_links(
            ItemList(links=links(self_href=request.get_full_path(), parent=reverse("contract"))),
            (item(name, href(name)) for name in names),
        )

    @route("GET", "/<fqdn:fqdn>", Level.SERVICE, Scope.CONFIG_READ, name="fqdn")
    @operation(summary="Find who holds an FQDN", responses={200: FqdnDocument})
    def get_fqdn(self, request: Request, fqdn: str) -> Response:
        return Response(fqdn_document(read_fqdn(self.principal, fqdn)))
