"""``/oauth/token``, ``/auth/logout``, introspection and keys of access tokens. Contract: Authentication.

Logging out ends a long-lived credential, in the style of RFC 7009.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import msgspec
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, PolymorphicProxySerializer
from rest_framework.response import Response

from accounts.access.credentials import IssuedToken, exchange_pat, exchange_refresh_token, revoke
from accounts.access.scopes import Level, Scope
from accounts.access.tokens import JsonWebKeySet, current_keys
from accounts.introspection import TokenDescription, describe_token
from accounts.routes import route
from accounts.serializers.signin import (
    CODE,
    PAT_EXCHANGE,
    REFRESH,
    CodeExchange,
    Introspection,
    LogoutRequest,
    PatExchange,
    TokenRefresh,
)
from accounts.signin.flow import Device
from accounts.signin.staff.opening import redeem_code
from accounts.viewsets import AppViewSet
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.request_context import current_address, current_request_id
from tenantadmin.lib.core.structs import JsonStruct, one_of
from tenantadmin.lib.http.bodies import StrictFormParser, StrictJsonParser
from tenantadmin.lib.http.handler import as_api_error
from tenantadmin.lib.http.serializers import unknown_name_message
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
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


#: The members of each grant type.
_GRANT_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    PAT_EXCHANGE: ("pat",),
    REFRESH: ("refresh_token",),
    CODE: ("code", "code_verifier"),
}


class OAuthViewSet(AppViewSet):
    """Exchanging and revoking tokens. Failures have their OAuth names."""

    tag = "Sign-in"

    @route("POST", "oauth/token", Level.PUBLIC, name="token")
    @operation(
        summary="Exchange a personal access token, a refresh token or a code for an access token",
        description="The body may also be a form (`application/x-www-form-urlencoded`).",
        document=PolymorphicProxySerializer(
            component_name="Token",
            serializers={PAT_EXCHANGE: PatExchange, REFRESH: TokenRefresh, CODE: CodeExchange},
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
        grant_type, given = _read_token_request(request.data)
        if grant_type == PAT_EXCHANGE:
            issued = exchange_pat(given["pat"])
        elif grant_type == REFRESH:
            issued = exchange_refresh_token(given["refresh_token"])
        else:
            issued = redeem_code(given["code"], verifier=given["code_verifier"], device=device_of(request))
        return Response(issued, headers=NO_STORE)

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


def device_of(request: Request) -> Device:
    """Return from where a request signs in."""
    return Device(address=current_address(), user_agent=request.headers.get("User-Agent", ""))


def _read_token_request(data: Any) -> tuple[str, dict[str, str]]:
    """Return the grant type and the members that it takes of a token request.

    Raises:
        OAuthError: ``invalid_request`` or ``unsupported_grant_type``, with what to send instead.
    """
    if not isinstance(data, dict):
        _refuse("The body is not an object with 'grant_type'.")
    grant_type = data.get("grant_type")
    if not isinstance(grant_type, str) or not grant_type:
        _refuse("'grant_type' is missing: send 'pat_exchange' or 'refresh_token'.")
    if grant_type not in _GRANT_TYPES:
        names = ", ".join(f"'{name}'" for name in _GRANT_TYPES)
        raise OAuthError("unsupported_grant_type", f"'grant_type' is one of {names}.")
    members = _GRANT_TYPES[grant_type]
    # Others are ignored (RFC 6749, 3.2): libraries send `client_id` and `scope`.
    for other, others in _GRANT_TYPES.items():
        if other != grant_type and (wrong := next((name for name in others if name in data), None)):
            _refuse(
                f"'{wrong}' belongs to the grant type '{other}'; '{grant_type}' takes '{members[0]}'. "
                "Send one of both."
            )
    for member in members:
        if not isinstance(data.get(member), str) or not data[member]:
            _refuse(f"'{member}' is missing: send the token's text.")
    return grant_type, {member: data[member] for member in members}


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


class IntrospectionViewSet(AppViewSet):
    """Access tokens, for programs that cannot verify them offline."""

    tag = "Sign-in"

    @route(
        "POST",
        "oauth/introspect",
        Level.SERVICE,
        Scope.CONFIG_READ,
        notes="`{active: false}` unless the caller has the scope on all live tenants of the token, or on its "
        "accounts if it names no live tenant",
        name="introspection",
    )
    @operation(
        summary="What an access token says, and whether it is in force",
        description="For programs that cannot verify it offline (RFC 7662). `active` is false for a token "
        "that is not in force, and for one of tenants that the caller may not read. The body may also be a "
        "form (`application/x-www-form-urlencoded`).",
        body=Introspection,
        parsers=(StrictJsonParser, StrictFormParser),
        only_reads=True,
        responses={200: TokenDescription},
        examples=[OpenApiExample("An access token", value={"token": "eyJ…"}, request_only=True)],
    )
    def introspect_token(self, request: Request) -> Response:
        return Response(describe_token(self.principal, self.body["token"]), headers=NO_STORE)


class SigningKeyViewSet(AppViewSet):
    """The keys of access tokens."""

    tag = "Discovery"

    @route("GET", ".well-known/jwks.json", Level.PUBLIC, name="signing-keys")
    @operation(
        summary="The public keys of access tokens (JWKS)",
        description="The public keys by which anyone verifies an access token offline.",
        responses={200: JsonWebKeySet},
    )
    def get_signing_keys(self, request: Request) -> Response:
        return Response(current_keys().as_jwks(), headers={"Cache-Control": "public, max-age=300"})
