"""``/users/{email}/tokens``: personal access tokens, by their owner. Contract: Authentication, 4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.access.principal import WILDCARD
from accounts.access.scopes import Scope
from accounts.pats import PatRequest, create_own_pat, list_pats, pat_item, revoke_pat
from accounts.permissions import AppView
from accounts.serializers.people import SCOPES
from tenantadmin.http import hal
from tenantadmin.http.fields import OneOfField, StrictCharField, TimestampField
from tenantadmin.http.reading import read_body, read_query
from tenantadmin.http.serializers import HalLinks, StrictSerializer, Success

if TYPE_CHECKING:
    from rest_framework.request import Request

_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
_MAX_ENTRIES = 1000


class Ids(serializers.ListField):
    """A list of UUIDs, or the wildcard alone."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=StrictCharField(), required=False, max_length=_MAX_ENTRIES, **options)

    def to_internal_value(self, data: Any) -> list[str]:
        names = super().to_internal_value(data)
        if names == [WILDCARD]:
            return names
        if WILDCARD in names:
            raise serializers.ValidationError("The wildcard '*' stands alone.", code="wildcard-not-alone")
        # An array of ids with each one's own finding, at its place in the array.
        ids = serializers.ListField(child=serializers.UUIDField()).run_validation(names)
        return list(dict.fromkeys(map(str, ids)))


class Endpoint(StrictSerializer):
    """Methods and paths that a PAT is bound to; no method means every one."""

    methods = serializers.ListField(child=OneOfField(choices=_METHODS), required=False)
    path = serializers.RegexField(r"^/[^\x00-\x1f]*$", max_length=500, help_text="A glob: '/tenants/*'.")


class PatBody(StrictSerializer):
    """A new PAT. ``endpoints`` empty means all; without ``expiresAt`` it stands until it is revoked.

    Without ``tenants`` and ``accounts`` it reaches at most what is its owner's own.
    """

    name = StrictCharField(max_length=100)
    scopes = serializers.ListField(child=OneOfField(choices=SCOPES), allow_empty=False, max_length=100)
    tenants = Ids(help_text='Tenant ids, or `["*"]` (platform admins).')
    accounts = Ids(help_text='Account ids, or `["*"]` (platform admins).')
    endpoints = Endpoint(many=True, required=False)
    expiresAt = TimestampField(required=False, allow_null=True)  # noqa: N815


class PatDocument(serializers.Serializer[Any]):
    """A PAT without its text; ``prefix`` is what that begins with."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    owner = serializers.EmailField()
    prefix = serializers.CharField()
    scopes = serializers.ListField(child=OneOfField(choices=SCOPES))
    tenants = serializers.ListField(child=serializers.CharField())
    accounts = serializers.ListField(child=serializers.CharField())
    endpoints = Endpoint(many=True)
    createdAt = serializers.DateTimeField()  # noqa: N815
    expiresAt = serializers.DateTimeField(allow_null=True)  # noqa: N815
    lastUsedAt = serializers.DateTimeField(allow_null=True)  # noqa: N815


class NewPatDocument(PatDocument):
    """A new PAT with its text, which is shown this once."""

    token = serializers.CharField()


class PatList(serializers.Serializer[Any]):
    _links = HalLinks()
    tokens = PatDocument(many=True)


class PatsView(AppView):
    operations: ClassVar = {"GET": "listPersonalAccessTokens", "POST": "createPersonalAccessToken"}

    @extend_schema(
        tags=["Personal access tokens"],
        summary="A user's personal access tokens that are not revoked, newest first",
        responses={200: PatList},
    )
    def get(self, request: Request, email: str) -> Response:
        read_query(None, request)
        tokens = list_pats(self.principal, email=email)
        links = hal.links(
            self_href=hal.path("users", email, "tokens"),
            parent=hal.path("users", email),
            items=[pat_item(token) for token in tokens],
        )
        return Response({"_links": links, "tokens": tokens})

    @extend_schema(
        tags=["Personal access tokens"],
        summary="Make a personal access token; its text is shown this once",
        request=PatBody,
        responses={201: NewPatDocument},
        examples=[
            OpenApiExample(
                "For the Gateway of one tenant",
                value={
                    "name": "gateway",
                    "scopes": ["cache-admin", "config:read"],
                    "tenants": ["3f2b8f0c-6d2f-4f0e-9a55-0d6f6d1d9f11"],
                },
                request_only=True,
            )
        ],
    )
    def post(self, request: Request, email: str) -> Response:
        read_query(None, request)
        wanted = read_pat_request(request)
        return Response(create_own_pat(self.principal, email=email, wanted=wanted), status=201)


class PatView(AppView):
    operations: ClassVar = {"DELETE": "revokePersonalAccessToken"}

    @extend_schema(
        tags=["Personal access tokens"],
        summary="Revoke a personal access token and the tokens minted from it",
        responses={200: Success},
    )
    def delete(self, request: Request, email: str, pat_id: int) -> Response:
        read_query(None, request)
        revoke_pat(self.principal, email=email, pat_id=pat_id)
        return Response({"success": True, "message": "The personal access token is revoked."})


def read_pat_request(request: Request) -> PatRequest:
    """Return what the body asks for.

    Raises:
        ValidationFailed: with the place and the cure of every finding.
    """
    body = read_body(PatBody, request)
    return PatRequest(
        name=body["name"],
        scopes=frozenset(Scope(name) for name in body["scopes"]),
        tenants=tuple(body.get("tenants", ())),
        accounts=tuple(body.get("accounts", ())),
        endpoints=tuple(body.get("endpoints", ())),
        expires_at=body.get("expiresAt"),
    )
