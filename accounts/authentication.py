"""Bearer authentication for DRF. Contract: Authentication."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header

from accounts.access.credentials import PAT_PREFIX
from accounts.access.rights import authenticate_token
from accounts.access.scopes import Scope
from accounts.access.tokens import verified_subject
from accounts.events import record_refused_token
from tenantadmin.lib.core.errors import InvalidToken

if TYPE_CHECKING:
    from rest_framework.request import Request

    from accounts.access.principal import Principal


class BearerAuthentication(BaseAuthentication):
    """Authenticates ``Authorization: Bearer <access token>``; the `Principal` becomes ``request.auth``."""

    def authenticate(self, request: Request) -> tuple[Principal, Principal] | None:
        # Every view of the API is an `ApiViewSet`.
        principal = read_bearer(request, is_write=not request.parser_context["view"].only_reads)
        return None if principal is None else (principal, principal)

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002
        return "Bearer"


def read_bearer(request: Request, *, is_write: bool) -> Principal | None:
    """Return the caller of a request, or None if it has no ``Authorization`` header.

    Raises:
        InvalidToken: the header does not contain a valid access token.
        TokenExpired: the access token has expired.
    """
    kind, _, token = get_authorization_header(request).partition(b" ")
    if not kind:
        return None
    if kind.lower() != b"bearer" or not token:
        raise InvalidToken("The Authorization header is not 'Bearer <token>'.")
    text = token.strip().decode("latin-1")
    if text.startswith(PAT_PREFIX):
        raise InvalidToken(
            "A personal access token is not a bearer token. Exchange it first: POST /oauth/token "
            "with grant_type=pat_exchange."
        )
    try:
        return authenticate_token(text, is_write=is_write)
    except InvalidToken as error:
        record_refused_token(subject=verified_subject(text), token=text, reason=error.text)
        raise


#: What each scope that a sign-in may give allows on the tenants of the user.
_SIGN_IN_SCOPES: Final = {
    Scope.CONFIG_READ: "Read configuration, rules and history.",
    Scope.CONFIG_WRITE: "Write configuration and rules.",
    Scope.LOGS_READ: "Read raw logs.",
    Scope.LOGS_QUERY: "Run SQL over the log.",
    Scope.LOGS_NOTIFY: "Tell the service of new raw logs.",
    Scope.USERS_READ: "Read users and memberships.",
    Scope.USERS_WRITE: "Write users and memberships.",
}


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describes `BearerAuthentication` in the contract: a token is given, or comes from signing in."""

    target_class = BearerAuthentication
    name = ["bearerAuth", "oauth2"]  # noqa: RUF012  # drf-spectacular declares it so

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[Any]]]:  # noqa: ARG002
        # Either of them is enough.
        return [{name: []} for name in self.name]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, Any]]:  # noqa: ARG002
        scopes = {str(scope): meaning for scope, meaning in _SIGN_IN_SCOPES.items()}
        return [
            {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
            {
                "type": "oauth2",
                "description": "Sign in at an identity provider, which leads to `redirect` with the tokens.",
                "flows": {
                    "implicit": {
                        "authorizationUrl": "/auth/login",
                        "refreshUrl": "/oauth/token",
                        "scopes": scopes,
                    }
                },
            },
        ]
