"""What signing in asks for and answers, for reading requests and for the contract.

Contract: Discovery and sign-in.
"""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.serializers.fields import EmailField
from accounts.signin.redirects import MAX_REDIRECT_LENGTH
from tenantadmin.lib.core.emails import MAX_EMAIL_LENGTH
from tenantadmin.lib.http.serializers import StrictCharField, StrictSerializer

_MAX_TOKEN = 4096


class SignInParameters(StrictSerializer):
    """``redirect`` is the address to go to, sent as ``redirect`` or ``return_to``."""

    redirect = StrictCharField(
        default="/", allow_blank=True, help_text="Where signing in leads; wins over `return_to`."
    )
    return_to = StrictCharField(required=False, allow_blank=True, help_text="Another name of `redirect`.")
    provider = StrictCharField(
        required=False,
        allow_blank=True,
        help_text="A configured provider; the first one where it is unknown.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "redirect" not in self.initial_data:
            # Without either, the dashboard's own page, which need not be ``/`` of its origin.
            attrs["redirect"] = attrs.get("return_to", "")
        return attrs


class StepUpParameters(StrictSerializer):
    """Where to go with the tokens."""

    redirect = StrictCharField(default="", allow_blank=True, help_text="As for `GET /auth/login`.")


class CallbackParameters(serializers.Serializer[Any]):
    """The query parameters of an identity provider's answer. It may add others."""

    code = serializers.CharField(required=False, allow_blank=True, help_text="The provider's code.")
    state = serializers.CharField(
        required=False, allow_blank=True, help_text="As the sign-in was begun with it."
    )
    error = serializers.CharField(required=False, allow_blank=True, help_text="Why the provider refused.")


class MagicLinkRequest(StrictSerializer):
    """Who wants a link, and where it leads. If ``redirect`` is not allowed, it leads to the dashboard."""

    email = EmailField(max_length=MAX_EMAIL_LENGTH)
    redirect = StrictCharField(max_length=MAX_REDIRECT_LENGTH, required=False, allow_blank=True, default="")


class MagicLinkParameters(StrictSerializer):
    t = StrictCharField(max_length=_MAX_TOKEN, required=False, help_text="The token of the link.")
    problem = StrictCharField(max_length=40, required=False, help_text="Why the button did not sign in.")


class MagicLinkProof(StrictSerializer):
    """A one-time link that was opened. ``token`` is the `t` of its address."""

    token = StrictCharField(max_length=_MAX_TOKEN)
    return_to = StrictCharField(max_length=MAX_REDIRECT_LENGTH, required=False, allow_blank=True)


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
