"""``GET /.well-known/jwks.json``. Contract: Discovery and sign-in, Authentication."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.tokens import JsonWebKeySet, current_keys
from accounts.routes import route
from accounts.viewsets import AppViewSet
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from rest_framework.request import Request


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
