"""``/tos`` and ``/users/{email}/tos``. Contract: Terms of service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.permissions import AppView
from tenantadmin.http.fields import StrictCharField
from tenantadmin.http.reading import read_body, read_query
from tenantadmin.http.schema import refusal
from tenantadmin.http.serializers import StrictSerializer
from tosapp.acknowledgements import acknowledge, list_acknowledgements
from tosapp.publishing import publish, read_by_hash, require_active

if TYPE_CHECKING:
    from rest_framework.request import Request

    from tosapp.normal import Terms

_MARKDOWN = "text/markdown; charset=utf-8"
_HASH_PARAMETER = OpenApiParameter(
    "md5",
    {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    OpenApiParameter.PATH,
    description="MD5 of the normalized document.",
)
_HASH_HEADER = OpenApiParameter(
    "X-Tos-Hash",
    {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    OpenApiParameter.HEADER,
    response=[200],
    description="MD5 of the document.",
)
_TEXT = {(200, "text/markdown"): OpenApiResponse(OpenApiTypes.STR, description="The document.")}


class TosDocument(StrictSerializer):
    """The terms, whole."""

    markdown = StrictCharField(allow_blank=True, trim_whitespace=False)


class TosPublishResult(serializers.Serializer[Any]):
    """``published`` is false where the document was active already."""

    hash = serializers.CharField()
    published = serializers.BooleanField()
    publishedAt = serializers.DateTimeField()  # noqa: N815
    publishedBy = serializers.EmailField()  # noqa: N815


class TosAcknowledgement(serializers.Serializer[Any]):
    hash = serializers.CharField()
    acknowledgedAt = serializers.DateTimeField()  # noqa: N815


class TosAckList(serializers.Serializer[Any]):
    """A user's acknowledgements, newest first."""

    email = serializers.EmailField()
    activeHash = serializers.CharField(allow_null=True)  # noqa: N815
    upToDate = serializers.BooleanField()  # noqa: N815
    acknowledgements = TosAcknowledgement(many=True)


class TosHashMismatch(serializers.Serializer[Any]):
    """The Error body with the hash of the active document."""

    error = serializers.ChoiceField(choices=["tos_hash_mismatch"])
    message = serializers.CharField()
    requestId = serializers.CharField()  # noqa: N815
    currentHash = serializers.CharField()  # noqa: N815


class TosView(AppView):
    operations: ClassVar = {"GET": "getTos", "POST": "publishTos"}

    @extend_schema(
        tags=["Terms of service"],
        summary="The active terms of service",
        parameters=[_HASH_HEADER],
        responses={**_TEXT, 503: refusal(503)},
    )
    def get(self, request: Request) -> HttpResponse:
        read_query(None, request)
        return markdown_response(require_active())

    @extend_schema(
        tags=["Terms of service"],
        summary="Publish the terms of service",
        request=TosDocument,
        responses={201: TosPublishResult, 200: TosPublishResult},
        examples=[
            OpenApiExample("A document", value={"markdown": "# Terms of service\n…"}, request_only=True)
        ],
    )
    def post(self, request: Request) -> Response:
        read_query(None, request)
        result = publish(read_body(TosDocument, request)["markdown"], actor=self.principal.email)
        return Response(result.as_json(), status=201 if result.published else 200)


class HistoricalTosView(AppView):
    operations: ClassVar = {"GET": "getHistoricalTos"}

    @extend_schema(
        tags=["Terms of service"],
        summary="Terms of service, active or superseded, by their hash",
        parameters=[_HASH_PARAMETER, _HASH_HEADER],
        responses=_TEXT,
    )
    def get(self, request: Request, md5: str) -> HttpResponse:
        read_query(None, request)
        return markdown_response(read_by_hash(md5))


class AcknowledgementsView(AppView):
    operations: ClassVar = {"GET": "listAcknowledgements", "POST": "acknowledgeTos"}

    @extend_schema(
        tags=["Terms of service"],
        summary="The caller's own acknowledgements, newest first",
        responses={200: TosAckList, 503: refusal(503)},
    )
    def get(self, request: Request, email: str) -> Response:
        read_query(None, request)
        return Response(list_acknowledgements(self.principal))

    @extend_schema(
        tags=["Terms of service"],
        summary="Acknowledge the active terms of service",
        description="`markdown` is the text that the user was shown. Refresh the token afterwards.",
        request=TosDocument,
        responses={
            204: OpenApiResponse(description="Recorded."),
            409: TosHashMismatch,
            503: refusal(503),
        },
        examples=[
            OpenApiExample("What was shown", value={"markdown": "# Terms of service\n…"}, request_only=True)
        ],
    )
    def post(self, request: Request, email: str) -> Response:
        read_query(None, request)
        acknowledge(self.principal, markdown=read_body(TosDocument, request)["markdown"])
        return Response(status=204)


def markdown_response(terms: Terms) -> HttpResponse:
    """Return a document with its hash."""
    return HttpResponse(terms.markdown, content_type=_MARKDOWN, headers={"X-Tos-Hash": terms.hash})
