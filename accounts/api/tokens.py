"""``POST /oauth/token`` and the signing keys. Contract: Discovery and sign-in, Authentication."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.access.credentials import AccessGrant, exchange_pat, exchange_refresh_token
from accounts.access.tokens import current_keys
from accounts.permissions import AppView
from tenantadmin.core.errors import ApiError
from tenantadmin.http.fields import StrictCharField
from tenantadmin.http.handler import as_api_error
from tenantadmin.http.parsers import StrictFormParser, StrictJsonParser
from tenantadmin.http.reading import read_query
from tenantadmin.http.serializers import unknown_name_message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rest_framework.request import Request

NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}


class OAuthError(ApiError):
    """A failure under its OAuth name (RFC 6749, 5.2), in the error body with ``error_description`` added."""

    def __init__(self, error: str, description: str, *, status: int = 400) -> None:
        super().__init__(description, extra={"error_description": description}, headers=NO_STORE)
        self.code = error  # type: ignore[misc]  # OAuth names many errors of one class
        self.status = status  # type: ignore[misc]


class TokenRequest(serializers.Serializer[Any]):
    """The body of ``POST /oauth/token``, JSON or form."""

    grant_type = serializers.ChoiceField(choices=["pat_exchange", "refresh_token"])
    pat = StrictCharField(required=False, help_text="With `pat_exchange`: the personal access token.")
    refresh_token = StrictCharField(required=False, help_text="With `refresh_token`: the refresh token.")


class TokenResponse(serializers.Serializer[Any]):
    """A bearer token; ``expires_in`` in seconds."""

    access_token = serializers.CharField()
    token_type = serializers.ChoiceField(choices=["Bearer"])
    expires_in = serializers.IntegerField()
    scope = serializers.CharField(help_text="Space separated.")


class OAuthErrorBody(serializers.Serializer[Any]):
    error = serializers.ChoiceField(
        choices=["invalid_request", "invalid_grant", "unsupported_grant_type", "invalid_client"]
    )
    error_description = serializers.CharField()
    message = serializers.CharField()
    requestId = serializers.CharField()  # noqa: N815


class JsonWebKey(serializers.Serializer[Any]):
    kty = serializers.ChoiceField(choices=["EC"])
    crv = serializers.ChoiceField(choices=["P-256"])
    x = serializers.CharField()
    y = serializers.CharField()
    kid = serializers.CharField()
    use = serializers.ChoiceField(choices=["sig"])
    alg = serializers.ChoiceField(choices=["ES256"])


class JsonWebKeySet(serializers.Serializer[Any]):
    keys = JsonWebKey(many=True)


_GRANTS: Mapping[str, tuple[str, Callable[[str], AccessGrant]]] = {
    "pat_exchange": ("pat", exchange_pat),
    "refresh_token": ("refresh_token", exchange_refresh_token),
}


class OAuthView(AppView):
    """An endpoint that names its failures as OAuth does."""

    def handle_exception(self, exc: Exception) -> Response:
        """Give every failure of this endpoint its OAuth name."""
        error = as_api_error(exc)
        if error is not None and not isinstance(error, OAuthError):
            name = error.code if error.code.startswith("invalid_grant") else "invalid_request"
            if error.status in {400, 401}:
                exc = OAuthError(name, error.text, status=error.status)
        return super().handle_exception(exc)


class TokenView(OAuthView):
    """Exchanges a personal access token or a refresh token for an access token."""

    operations: ClassVar = {"POST": "exchangeToken"}
    parser_classes = (StrictJsonParser, StrictFormParser)

    @extend_schema(
        tags=["Sign-in"],
        summary="Exchange a personal access token or a refresh token for an access token",
        request={
            "application/json": TokenRequest,
            "application/x-www-form-urlencoded": TokenRequest,
        },
        responses={200: TokenResponse, 400: OAuthErrorBody, 401: OAuthErrorBody},
        examples=[
            OpenApiExample(
                "A personal access token",
                value={"grant_type": "pat_exchange", "pat": "tas_pat_…"},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        read_query(None, request)
        grant_type, credential = read_token_request(request)
        return Response(_GRANTS[grant_type][1](credential).as_json(), headers=NO_STORE)


def read_token_request(request: Request) -> tuple[str, str]:
    """Return the grant type and the credential of a token request.

    Raises:
        OAuthError: ``invalid_request`` or ``unsupported_grant_type``, with what to send instead.
    """
    data = request.data
    if not isinstance(data, dict):
        refuse("The body is not an object with 'grant_type'.")
    grant_type = data.get("grant_type")
    if not isinstance(grant_type, str) or not grant_type:
        refuse("'grant_type' is missing: send 'pat_exchange' or 'refresh_token'.")
    if grant_type not in _GRANTS:
        raise OAuthError("unsupported_grant_type", "'grant_type' is 'pat_exchange' or 'refresh_token'.")
    member, _ = _GRANTS[grant_type]
    unknown = sorted(set(data) - {"grant_type", member})
    if unknown:
        refuse(unknown_name_message(unknown[0], ["grant_type", member]))
    credential = data.get(member)
    if not isinstance(credential, str) or not credential:
        refuse(f"'{member}' is missing: send the token's text.")
    return grant_type, credential


def refuse(description: str) -> NoReturn:
    """Refuse a request that is malformed.

    Raises:
        OAuthError: ``invalid_request``.
    """
    raise OAuthError("invalid_request", description)


class SigningKeysView(AppView):
    """The public keys by which anyone verifies an access token offline."""

    operations: ClassVar = {"GET": "getSigningKeys"}

    @extend_schema(
        tags=["Discovery"],
        summary="The public keys of access tokens (JWKS)",
        responses={200: JsonWebKeySet},
    )
    def get(self, request: Request) -> Response:
        read_query(None, request)
        return Response(current_keys().as_jwks(), headers={"Cache-Control": "public, max-age=300"})
