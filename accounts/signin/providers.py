"""The redirect flow at an identity provider, with the providers of django-allauth.

allauth builds the addresses, exchanges the code and reads each provider's answer. Its sessions, views and
tables are not used. This module checks the ID token itself: its nonce, its signature, which allauth does not
verify if the token came directly from the provider, and its times with a leeway for clocks.
"""

from __future__ import annotations

import logging
import secrets
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import jwt
import requests
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.base import ProviderException
from allauth.socialaccount.providers.google import views as google
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.urls import reverse
from msgspec import Meta

from accounts.events import known_address, sign_in_failures_recorded
from accounts.signin.flow import Device, Identity, SignIn, SignInFailed, complete_sign_in
from accounts.signin.state import InvalidState, PendingSignIn, Purpose, save_pending, take_pending
from tenantadmin.lib.core.emails import check_email
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from django.http import HttpRequest


logger = logging.getLogger(__name__)
#: Providers that use OpenID Connect and return the nonce in an ID token.
_OPENID: Final = frozenset({"openid_connect", "google"})
#: How much the provider's clock may differ, in either direction.
_CLOCK_LEEWAY: Final = timedelta(seconds=120)
#: What allauth raises if a provider's answer is invalid or missing.
_PROVIDER_ERRORS: Final = (
    OAuth2Error,
    ProviderException,
    PermissionDenied,
    requests.RequestException,
    jwt.PyJWTError,
    ImproperlyConfigured,
    ValueError,
    TypeError,
    KeyError,
)


class ProviderNotConfigured(ApiError):
    """The settings configure no identity provider."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "identity_provider_unavailable"
    message: ClassVar[str] = "No identity provider is configured."


class ProviderFailed(ApiError):
    """The identity provider does not answer."""

    status: ClassVar[int] = 502
    code: ClassVar[str] = "identity_provider_error"
    message: ClassVar[str] = "The identity provider does not answer. Try again later."


def choose_provider(name: str) -> str:
    """Return the configured provider called ``name``, or the first one if no provider has this name.

    Raises:
        ProviderNotConfigured: no provider is configured.
    """
    names = settings.SIGNIN_PROVIDERS
    if not names:
        raise ProviderNotConfigured
    return str(name if name in names else names[0])


class SignInProvider(JsonStruct):
    id: Annotated[str, Meta(description="The `provider` of `GET /auth/login`.")]
    name: Annotated[str, Meta(description="For people to read.")]


def list_providers() -> list[SignInProvider]:
    """Return each configured provider, the default first."""
    apps = [app for kind in settings.SOCIALACCOUNT_PROVIDERS.values() for app in kind["APPS"]]
    names = {app["provider_id"]: app["name"] for app in apps}
    return [SignInProvider(id=provider, name=names[provider]) for provider in settings.SIGNIN_PROVIDERS]


def authorization_url(
    request: HttpRequest,
    *,
    provider: str,
    redirect: str,
    browser: str,
    purpose: Purpose = Purpose.TOKENS,
    user_id: int | None = None,
) -> str:
    """Start a sign-in at ``provider`` and return the address of its page.

    ``redirect`` is the address that the browser is sent to after the sign-in; ``user_id`` is the user that
    asked to link an identity.

    Raises:
        ProviderFailed: the provider's discovery document cannot be read.
        RedisError: the sign-in cannot be stored.
    """
    allauth_provider = _provider(request, provider)
    adapter = _adapter(request, allauth_provider)
    parameters = {**allauth_provider.get_auth_params(), **allauth_provider.get_pkce_params()}
    pending = PendingSignIn(
        provider=provider,
        redirect=redirect,
        verifier=parameters.pop("code_verifier"),
        nonce=secrets.token_urlsafe(24),
        purpose=purpose,
        user_id=user_id,
    )
    if allauth_provider.id in _OPENID:
        parameters["nonce"] = pending.nonce
    try:
        page = adapter.authorize_url
        client = adapter.get_client(request, allauth_provider.app)
    except _PROVIDER_ERRORS as error:
        logger.warning("The identity provider %r failed: %s", provider, error)
        raise ProviderFailed from error
    client.state = save_pending(pending, browser=browser)
    return str(client.get_redirect_url(page, allauth_provider.get_scope(), parameters))


def fetch_identity(request: HttpRequest, pending: PendingSignIn) -> Identity:
    """Exchange the ``code`` of a callback for the identity of the user.

    Raises:
        SignInFailed: the exchange failed, or the provider's answer is invalid.
    """
    try:
        provider = _provider(request, pending.provider)
        adapter = _adapter(request, provider)
        _check_issuer(adapter, request.GET.get("iss"))
        client = adapter.get_client(request, provider.app)
        answer = adapter.get_access_token_data(
            request, provider.app, client, pkce_code_verifier=pending.verifier
        )
        login = adapter.complete_login(request, provider.app, adapter.parse_token(answer), response=answer)
        if provider.id in _OPENID:
            _check_id_token(answer, login, nonce=pending.nonce)
    except _PROVIDER_ERRORS as error:
        logger.warning("Signing in at %r failed: %s", pending.provider, error)
        is_silent = isinstance(error, requests.ConnectionError | requests.Timeout)
        said = "did not answer" if is_silent else "gave an answer that is not valid"
        raise SignInFailed(why=f"The identity provider {said}.") from error
    return _identity(pending.provider, login)


def _provider(request: HttpRequest, name: str) -> Any:
    return get_adapter().get_provider(request, name)


def _adapter(request: HttpRequest, provider: Any) -> Any:
    adapter = provider.get_oauth2_adapter(request)
    # An address for each provider, so that no provider can pass on the code of another one.
    path = reverse("provider-callback", kwargs={"provider": provider.app.provider_id})
    adapter.get_callback_url = lambda request, app: f"{settings.PUBLIC_BASE_URL}{path}"  # noqa: ARG005
    adapter._decode_id_token = partial(_decode_id_token, adapter)
    return adapter


def _check_issuer(adapter: Any, named: str | None) -> None:
    """Check who sent the browser back (RFC 9207), if the provider has an issuer to compare with.

    Raises:
        OAuth2Error: the response is of another provider, or names none although the provider always does.
    """
    if isinstance(adapter, google.GoogleOAuth2Adapter):
        issuer, is_always_named = google.ID_TOKEN_ISSUER, False
    elif isinstance(adapter, OpenIDConnectOAuth2Adapter):
        issuer = adapter.openid_config["issuer"]
        is_always_named = adapter.openid_config.get("authorization_response_iss_parameter_supported") is True
    else:
        return
    if named != issuer and (named is not None or is_always_named):
        raise OAuth2Error(f"the response is of the issuer {named!r}, not of {issuer!r}")


def _decode_id_token(adapter: Any, app: Any, id_token: str) -> dict[str, Any]:
    """Return the claims of an ID token after checking signature, issuer, audience and times.

    allauth's own check has no leeway for clocks, and trusts the connection instead of the signature.

    Raises:
        PyJWTError, OAuth2Error: the token is not valid.
    """
    if isinstance(adapter, google.GoogleOAuth2Adapter):
        keys, issuer = google.CERTS_URL, google.ID_TOKEN_ISSUER
        lookup = jwtkit.lookup_kid_pem_x509_certificate
    else:
        keys, issuer = adapter.openid_config["jwks_uri"], adapter.openid_config["issuer"]
        lookup = jwtkit.lookup_kid_jwk
    algorithm, key = jwtkit.fetch_key(id_token, keys, lookup)
    claims: dict[str, Any] = jwt.decode(
        id_token,
        key=key,
        algorithms=[algorithm],
        issuer=issuer,
        audience=app.client_id,
        leeway=_CLOCK_LEEWAY,
    )
    jwtkit.verify_jti(claims)
    return claims


def _check_id_token(answer: Any, login: Any, *, nonce: str) -> None:
    """Check nonce and subject. allauth has verified signature, issuer, audience and expiry.

    Raises:
        OAuth2Error: the ID token is missing or of another sign-in, or the user info is about another user.
    """
    if "id_token" not in answer:
        raise OAuth2Error("no ID token")
    claims = jwt.decode(answer["id_token"], options={"verify_signature": False})
    if not secrets.compare_digest(str(claims.get("nonce", "")), nonce):
        raise OAuth2Error("the ID token is of another sign-in")
    userinfo = login.account.extra_data.get("userinfo") or {}
    if userinfo.get("sub", claims["sub"]) != claims["sub"]:
        raise OAuth2Error("the user info is about another user")


def _identity(provider: str, login: Any) -> Identity:
    """Return the identity with the best address: a verified one, if possible the primary one.

    `complete_sign_in` refuses an address that is not verified.
    """
    data = login.account.extra_data
    addresses = sorted(login.email_addresses, key=lambda address: (address.verified, address.primary))
    best = addresses[-1] if addresses else None
    profile = data.get("userinfo") or data.get("id_token") or data
    name = profile.get("name") or profile.get("displayName") or ""
    return Identity(
        email=best.email if best else "",
        email_verified=bool(best and best.verified in {True, "true"}),
        provider=provider,
        subject=login.account.uid,
        display_name=name if isinstance(name, str) else "",
    )


def take_sign_in(*, state: str, browser: str, provider: str | None) -> PendingSignIn:
    """Return the started sign-in that ``state`` belongs to, and use it up.

    ``provider`` is the one whose address was called, or None for the address that all of them may use.

    Raises:
        SignInFailed: the state is invalid, or of a sign-in at another provider.
        RedisError: Redis does not answer.
    """
    with sign_in_failures_recorded(way=provider or ""):
        try:
            pending = take_pending(state, browser=browser)
        except InvalidState as error:
            raise SignInFailed(f"{error} Start again.", why=str(error)) from error
        if provider not in {None, pending.provider}:
            why = "The sign-in was begun at another identity provider."
            raise SignInFailed(f"{why} Start again.", why=why)
    return pending


def prove_identity(request: HttpRequest, pending: PendingSignIn, *, refused: bool) -> Identity:
    """Return who has signed in at the provider. ``refused`` is true if it sent an error instead of a code.

    Raises:
        SignInFailed: the provider refused or failed.
    """
    with sign_in_failures_recorded(way=pending.provider):
        if refused:
            why = "The identity provider refused."
            raise SignInFailed(f"{why} Start again.", why=why)
        return fetch_identity(request, pending)


def finish_sign_in(request: HttpRequest, pending: PendingSignIn, *, refused: bool, device: Device) -> SignIn:
    """Return the tokens of a sign-in.

    Raises:
        SignInFailed: the provider refused or failed, or the user of the address has another identity.
        Forbidden: the email's domain may not sign in, or the user is deactivated.
    """
    identity = prove_identity(request, pending, refused=refused)
    with sign_in_failures_recorded(known_address(identity.email), way=pending.provider):
        return complete_sign_in(identity, device)


class SettingsOnlyAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth is not typed
    """Looks up applications by the names of `SIGNIN_PROVIDERS`; drops unusable addresses."""

    def list_apps(
        self,
        request: HttpRequest | None,  # noqa: ARG002
        provider: str | None = None,
        client_id: str | None = None,
    ) -> list[Any]:
        return [
            SocialApp(provider=kind, **app)
            for kind, configuration in settings.SOCIALACCOUNT_PROVIDERS.items()
            for app in configuration["APPS"]
            if provider in {None, kind, app["provider_id"]} and client_id in {None, app["client_id"]}
        ]

    def get_provider(self, request: HttpRequest, provider: str, client_id: str | None = None) -> Any:
        found = super().get_provider(request, provider, client_id)
        addresses_of, fields_of = found.extract_email_addresses, found.extract_common_fields

        def plain_addresses(data: Any) -> list[Any]:
            return [address for address in addresses_of(data) if _is_usable(address.email)]

        def plain_fields(data: Any) -> dict[str, Any]:
            fields: dict[str, Any] = fields_of(data)
            return fields if _is_usable(fields.get("email")) else {**fields, "email": None}

        found.extract_email_addresses, found.extract_common_fields = plain_addresses, plain_fields
        return found


def _is_usable(email: object) -> bool:
    try:
        check_email(str(email))
    except ValueError:
        return False
    return True
