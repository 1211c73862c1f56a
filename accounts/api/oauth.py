"""``POST /oauth/token`` and ``POST /auth/logout``. Contract: Discovery and sign-in, Authentication.

Logging out ends a long-lived credential, in the style of RFC 7009.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import msgspec
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, PolymorphicProxySerializer
from rest_framework.response import Response

from accounts.access.credentials import IssuedToken, exchange_pat, exchange_refresh_token, revoke
from accounts.access.policy import Level
from accounts.routes import route
from accounts.serializers.oauth import (
    PAT_EXCHANGE,
    REFRESH,
    LogoutRequest,
    PatExchange,
    TokenRefresh,
)
from accounts.viewsets import AppViewSet
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.request_context import current_request_id
from tenantadmin.lib.core.structs import JsonStruct, one_of
from tenantadmin.lib.http.handler import as_api_error
from tenantadmin.lib.http.parsers import StrictFormParser, StrictJsonParser
from tenantadmin.lib.http.serializers import unknown_name_message
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rest_framework.request import Request

#: RFC 6749, 5.2.
OAUTH_ERRORS: Final = ("invalid_request", "invalid_grant", "unsupported_grant_type", "invalid_client")
NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}


class OAuthErrorBody(JsonStruct):
    """Why there is no token (RFC 6749, 5.2)."""

    error: Annotated[str, one_of(OAUTH_ERRORS)]
    error_description: str = msgspec.field(name="error_description")
    message: str
    request_id: str


class OAuthError(ApiError):
    """A failure under its OAuth name (RFC 6749, 5.2), in the error body with ``error_description`` added."""

    def __init__(self, error: str, description: str, *, status: int = 400) -> None:
        super().__init__(description, headers=NO_STORE)
        self.code = error  # type: ignore[misc]  # OAuth names many errors of one class
        self.status = status  # type: ignore[misc]

    def body(self) -> OAuthErrorBody:
        return OAuthErrorBody(
            error=self.code,
            error_description=self.text,
            message=self.text,
            request_id=current_request_id(),
        )


_GRANT_TYPES: Mapping[str, tuple[str, Callable[[str], IssuedToken]]] = {
    PAT_EXCHANGE: ("pat", exchange_pat),
    REFRESH: ("refresh_token", exchange_refresh_token),
}


class OAuthViewSet(AppViewSet):
    """Exchanging and revoking tokens. Failures have their OAuth names."""

    tag = "Sign-in"

    @route("POST", "oauth/token", Level.PUBLIC, name="token")
    @operation(
        summary="Exchange a personal access token or a refresh token for an access token",
        description="The body may also be a form (`application/x-www-form-urlencoded`).",
        document=PolymorphicProxySerializer(
            component_name="Token",
            serializers={PAT_EXCHANGE: PatExchange, REFRESH: TokenRefresh},
            resource_type_field_name="grant_type",
        ),
        parsers=(StrictJsonParser, StrictFormParser),
        responses={200: IssuedToken, 400: OAuthErrorBody, 401: OAuthErrorBody},
        examples=[
            OpenApiExample(
                "A personal access token",
                value={"grant_type": "pat_exchange", "pat": "tas_pat_…"},
                request_only=True,
            )
        ],
    )
    def exchange_token(self, request: Request) -> Response:
        grant_type, credential = _read_token_request(request.data)
        return Response(_GRANT_TYPES[grant_type][1](credential), headers=NO_STORE)

    @route("POST", "auth/logout", Level.PUBLIC, name="logout")
    @operation(
        summary="Revoke a refresh token or a personal access token",
        description="Revokes the token in the body. Every holder of the token may do this, signed in or not. "
        "The body may also be a form (`application/x-www-form-urlencoded`).",
        document=LogoutRequest,
        parsers=(StrictJsonParser, StrictFormParser),
        responses={200: OpenApiTypes.OBJECT, 400: OAuthErrorBody},
        examples=[OpenApiExample("Signing out", value={"token": "tas_refresh_…"}, request_only=True)],
    )
    def logout(self, request: Request) -> Response:
        revoke(_read_token(request.data))
        return Response({}, headers=NO_STORE)

    def handle_exception(self, exc: Exception) -> Response:
        """Give every failure its OAuth name."""
        error = as_api_error(exc)
        if error is not None and not isinstance(error, OAuthError):
            name = error.code if error.code.startswith("invalid_grant") else "invalid_request"
            if error.status in {400, 401}:
                exc = OAuthError(name, error.text, status=error.status)
        return super().handle_exception(exc)


def _read_token_request(data: Any) -> tuple[str, str]:
    """Return the grant type and the credential of a token request.

    Raises:
        OAuthError: ``invalid_request`` or ``unsupported_grant_type``, with what to send instead.
    """
    if not isinstance(data, dict):
        _refuse("The body is not an object with 'grant_type'.")
    grant_type = data.get("grant_type")
    if not isinstance(grant_type, str) or not grant_type:
        _refuse("'grant_type' is missing: send 'pat_exchange' or 'refresh_token'.")
    if grant_type not in _GRANT_TYPES:
        raise OAuthError("unsupported_grant_type", "'grant_type' is 'pat_exchange' or 'refresh_token'.")
    member, _ = _GRANT_TYPES[grant_type]
    # Others are ignored (RFC 6749, 3.2): libraries send `client_id` and `scope`.
    for other, (other_member, _) in _GRANT_TYPES.items():
        if other != grant_type and other_member in data:
            _refuse(
                f"'{other_member}' belongs to the grant type '{other}'; '{grant_type}' takes '{member}'. "
                "Send one of both."
            )
    credential = data.get(member)
    if not isinstance(credential, str) or not credential:
        _refuse(f"'{member}' is missing: send the token's text.")
    return grant_type, credential


def _read_token(data: Any) -> str:
    """Return the text of the credential to end.

    Raises:
        OAuthError: ``invalid_request``: no token, a member that is not known, or a hint that is no text.
    """
    known = ["token", "token_type_hint"]
    if not isinstance(data, dict):
        _refuse("The body is not an object with 'token'.")
    unknown = sorted(set(data) - set(known))
    if unknown:
        _refuse(unknown_name_message(unknown[0], known))
    token = data.get("token")
    if not isinstance(token, str) or not token:
        _refuse("'token' is missing: send the token's text.")
    if not isinstance(data.get("token_type_hint", ""), str):
        _refuse("'token_type_hint' is not a string.")
    return token


def _refuse(description: str) -> NoReturn:
    """Refuse a request that is malformed.

    Raises:
        OAuthError: ``invalid_request``.
    """
    raise OAuthError("invalid_request", description)
