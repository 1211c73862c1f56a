"""The service's own pages: the contract and its human form."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema

from accounts.permissions import AppView
from tenantadmin.http.contract import published_contract
from tenantadmin.http.etags import not_modified
from tenantadmin.http.parameters import ETAG, IF_NONE_MATCH
from tenantadmin.http.reading import read_query
from tenantadmin.http.schema import NOT_MODIFIED

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.response import Response


class ContractView(AppView):
    """Serves the committed OpenAPI document."""

    operations: ClassVar = {"GET": "getContract"}

    @extend_schema(
        tags=["Discovery"],
        summary="The contract of this service (OpenAPI 3.0.3)",
        parameters=[IF_NONE_MATCH, ETAG],
        responses={200: OpenApiTypes.OBJECT, 304: NOT_MODIFIED},
    )
    def get(self, request: Request) -> HttpResponse | Response:
        read_query(None, request)
        text, etag = published_contract()
        return not_modified(request, etag) or HttpResponse(
            text, content_type="application/json", headers={"ETag": etag}
        )
