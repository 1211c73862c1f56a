"""Serializers of OAuth tokens and signing keys, for the contract. Contract: Authentication."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from tenantadmin.http.serializers import StrictCharField


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


class LogoutRequest(serializers.Serializer[Any]):
    """The refresh token or personal access token to revoke. An unknown token is not an error."""

    token = StrictCharField()
    token_type_hint = StrictCharField(required=False, allow_blank=True, help_text="Accepted and ignored.")


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
