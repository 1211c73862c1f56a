"""``POST /auth/logout``: ending a long-lived credential (in the style of RFC 7009)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.access.credentials import revoke
from accounts.api.tokens import NO_STORE, OAuthErrorBody, OAuthView, refuse
from tenantadmin.http.fields import StrictCharField
from tenantadmin.http.parsers import StrictFormParser, StrictJsonParser
from tenantadmin.http.reading import read_query
from tenantadmin.http.serializers import unknown_name_message

if TYPE_CHECKING:
    from rest_framework.request import Request


class LogoutRequest(serializers.Serializer[Any]):
    """The refresh token or personal access token to end; an unknown one is as good as ended."""

    token = StrictCharField()
    token_type_hint = StrictCharField(required=False, allow_blank=True, help_text="Accepted and ignored.")


class LogoutView(OAuthView):
    """Revokes the token in the body, whoever sends it: holding it is proof enough."""

    operations: ClassVar = {"POST": "logout"}
    parser_classes = (StrictJsonParser, StrictFormParser)

    @extend_schema(
        tags=["Sign-in"],
        summary="Revoke a refresh token or a personal access token",
        request={"application/json": LogoutRequest, "application/x-www-form-urlencoded": LogoutRequest},
        responses={200: OpenApiTypes.OBJECT, 400: OAuthErrorBody},
        examples=[OpenApiExample("Signing out", value={"token": "tas_refresh_…"}, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        read_query(None, request)
        revoke(read_token(request))
        return Response({}, headers=NO_STORE)


def read_token(request: Request) -> str:
    """Return the text of the credential to end.

    Raises:
        OAuthError: ``invalid_request``: no token, a member that is not known, or a hint that is no text.
    """
    data = request.data
    known = ["token", "token_type_hint"]
    if not isinstance(data, dict):
        refuse("The body is not an object with 'token'.")
    unknown = sorted(set(data) - set(known))
    if unknown:
        refuse(unknown_name_message(unknown[0], known))
    token = data.get("token")
    if not isinstance(token, str) or not token:
        refuse("'token' is missing: send the token's text.")
    if not isinstance(data.get("token_type_hint", ""), str):
        refuse("'token_type_hint' is not a string.")
    return token
