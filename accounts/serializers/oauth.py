"""Serializers of requests for OAuth tokens. Contract: Authentication."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from tenantadmin.lib.http.serializers import StrictCharField

PAT_EXCHANGE = "pat_exchange"
REFRESH = "refresh_token"
CODE = "authorization_code"


class PatExchange(serializers.Serializer[Any]):
    """A personal access token to exchange."""

    grant_type = serializers.ChoiceField(choices=[PAT_EXCHANGE])
    pat = StrictCharField(help_text="The personal access token: `tas_pat_…`.")


class TokenRefresh(serializers.Serializer[Any]):
    """A refresh token to exchange. It stays valid."""

    grant_type = serializers.ChoiceField(choices=[REFRESH])
    refresh_token = StrictCharField(help_text="The refresh token: `tas_refresh_…`.")


class CodeExchange(serializers.Serializer[Any]):
    """The code by which the admin site signs staff in to the dashboard, with its secret (RFC 7636)."""

    grant_type = serializers.ChoiceField(choices=[CODE])
    code = StrictCharField(help_text="Valid once, for a minute.")
    code_verifier = StrictCharField(help_text="The secret of the challenge that the code was made for.")


class Introspection(serializers.Serializer[Any]):
    """The access token to describe. Other members are ignored (RFC 7662, 2.1)."""

    token = StrictCharField(max_length=16_384)
    token_type_hint = StrictCharField(required=False, allow_blank=True, help_text="Accepted and ignored.")


class LogoutRequest(serializers.Serializer[Any]):
    """The refresh token or personal access token to revoke. An unknown token is not an error."""

    token = StrictCharField()
    token_type_hint = StrictCharField(required=False, allow_blank=True, help_text="Accepted and ignored.")
