"""The terms of service and their acknowledgements. Contract: Terms of service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework.response import Response

from accounts.access.scopes import Level, Scope
from accounts.routes import route
from accounts.viewsets import AppViewSet
from tenantadmin.lib.http.schema import refusal
from tenantadmin.lib.http.serializers import StrictCharField, StrictSerializer
from tenantadmin.lib.http.viewsets import operation
from tosapp.acknowledgements import TosAckList, TosHashMismatchBody, acknowledge, read_acknowledgements
from tosapp.publishing import TosPublishResult, publish, read_by_hash, require_active

if TYPE_CHECKING:
    from rest_framework.request import Request

    from tosapp.publishing import Terms


class TosDocument(StrictSerializer):
    """The terms, whole."""

    markdown = StrictCharField(allow_blank=True, trim_whitespace=False)


_HASH: Final = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_HASH_PARAMETER: Final = OpenApiParameter(
    "md5", _HASH, OpenApiParameter.PATH, description="MD5 of the normalized document."
)
_HASH_HEADER: Final = OpenApiParameter(
    "X-Tos-Hash", _HASH, OpenApiParameter.HEADER, response=[200], description="MD5 of the document."
)
_TEXT: Final = {(200, "text/markdown"): OpenApiResponse(OpenApiTypes.STR, description="The document.")}


class TermsViewSet(AppViewSet):
    """The published terms of service."""

    tag = "Terms of service"

    @route("GET", "tos", Level.PUBLIC, name="tos")
    @operation(
        summary="The active terms of service", headers=[_HASH_HEADER], responses={**_TEXT, 503: refusal(503)}
    )
    def get_tos(self, request: Request) -> HttpResponse:
        return _markdown_response(require_active())

    @route("POST", "tos", Level.PLATFORM_PAT, Scope.TOS_PUBLISH)
    @operation(
        summary="Publish the terms of service",
        body=TosDocument,
        responses={201: TosPublishResult, 200: TosPublishResult},
        examples=[
            OpenApiExample("A document", value={"markdown": "# Terms of service\n…"}, request_only=True)
        ],
    )
    def publish_tos(self, request: Request) -> Response:
        result = publish(self.body["markdown"], actor=self.principal.email)
        return Response(result, status=201 if result.published else 200)

    @route("GET", "tos/<str:md5>", Level.SERVICE, before_terms=True, name="tos-document")
    @operation(
        summary="Terms of service, active or superseded, by their hash",
        path=[_HASH_PARAMETER],
        headers=[_HASH_HEADER],
        responses=_TEXT,
    )
    def get_historical_tos(self, request: Request, md5: str) -> HttpResponse:
        return _markdown_response(read_by_hash(md5))


class AcknowledgementViewSet(AppViewSet):
    """Which terms of service the caller has acknowledged."""

    tag = "Terms of service"

    @route("GET", "users/<email:email>/tos", Level.SELF, before_terms=True, name="user-tos")
    @operation(
        summary="The caller's own acknowledgements, newest first",
        responses={200: TosAckList, 503: refusal(503)},
    )
    def list_acknowledgements(self, request: Request, email: str) -> Response:
        return Response(read_acknowledgements(self.principal))

    @route("POST", "users/<email:email>/tos", Level.SELF, before_terms=True, notes="signed in only")
    @operation(
        summary="Acknowledge the active terms of service",
        description="`markdown` is the text that the user was shown. Refresh the token afterwards.",
        body=TosDocument,
        responses={
            204: OpenApiResponse(description="Recorded."),
            409: TosHashMismatchBody,
            503: refusal(503),
        },
        examples=[
            OpenApiExample("What was shown", value={"markdown": "# Terms of service\n…"}, request_only=True)
        ],
    )
    def acknowledge_tos(self, request: Request, email: str) -> Response:
        acknowledge(self.principal, markdown=self.body["markdown"])
        return Response(status=204)


def _markdown_response(terms: Terms) -> HttpResponse:
    return HttpResponse(
        terms.markdown, content_type="text/markdown; charset=utf-8", headers={"X-Tos-Hash": terms.hash}
    )
