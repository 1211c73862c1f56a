"""``/auth/login`` and ``/auth/callback``: the redirect flow. Contract: Discovery and sign-in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers

from accounts.api.tokens import NO_STORE
from accounts.permissions import AppView
from accounts.signin.callback import finish_sign_in
from accounts.signin.providers import authorization_url, choose_provider
from accounts.signin.redirects import with_parameters
from accounts.signin.settings import return_address
from accounts.signin.state import is_browser_id, new_browser_id
from tenantadmin.core.errors import BadRequest
from tenantadmin.core.hosts import origin_of
from tenantadmin.http.fields import StrictCharField
from tenantadmin.http.reading import read_query
from tenantadmin.http.schema import refusal
from tenantadmin.http.serializers import StrictSerializer

if TYPE_CHECKING:
    from rest_framework.request import Request

    from accounts.signin.flow import SignIn

BROWSER_COOKIE: Final = "signin_browser"
_CALLBACK: Final = "/auth/callback"


class SignInTokens(serializers.Serializer[Any]):
    """The service's own tokens; ``expires_in`` in seconds, of the access token."""

    access_token = serializers.CharField()
    refresh_token = serializers.CharField()
    expires_in = serializers.IntegerField()


class LoginQuery(StrictSerializer):
    redirect = StrictCharField(required=False, allow_blank=True)
    return_to = StrictCharField(required=False, allow_blank=True)
    provider = StrictCharField(required=False, allow_blank=True, default="")


class LoginView(AppView):
    operations: ClassVar = {"GET": "startSignIn"}

    @extend_schema(
        tags=["Sign-in"],
        summary="Begin signing in at an identity provider",
        parameters=[
            OpenApiParameter(
                "redirect", description="Where signing in leads; wins over `return_to`.", default="/"
            ),
            OpenApiParameter("return_to", description="Another name of `redirect`."),
            OpenApiParameter(
                "provider", description="A configured provider; the first one where it is unknown."
            ),
        ],
        responses={
            302: OpenApiResponse(description="To the identity provider's page."),
            502: refusal(502),
        },
    )
    def get(self, request: Request) -> HttpResponse:
        query = read_query(LoginQuery, request)
        target = query.get("redirect", query.get("return_to", "/"))
        browser = _browser_of(request) or new_browser_id()
        page = authorization_url(
            request._request,
            provider=choose_provider(query["provider"]),
            redirect=return_address(target),
            browser=browser,
        )
        response = HttpResponse(status=302, headers={**NO_STORE, "Location": page})
        response.set_cookie(
            BROWSER_COOKIE,
            browser,
            max_age=settings.SIGNIN_STATE_SECONDS,
            path=_CALLBACK.rpartition("/")[0],
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )
        return response


class CallbackView(AppView):
    operations: ClassVar = {"GET": "finishSignIn"}

    @extend_schema(
        tags=["Sign-in"],
        summary="Where the identity provider sends the browser back to",
        parameters=[
            OpenApiParameter("code", description="The provider's code."),
            OpenApiParameter("state", description="As the sign-in was begun with it."),
            OpenApiParameter("error", OpenApiTypes.STR, description="Why the provider refused."),
        ],
        responses={
            302: OpenApiResponse(
                description="To where the sign-in was to lead, with `access_token`, `refresh_token` and "
                "`expires_in`."
            ),
            401: refusal(401),
            403: refusal(403),
        },
    )
    def get(self, request: Request) -> HttpResponse:
        choose_provider("")
        parameters = request.query_params
        if not parameters.get("code") and not parameters.get("error"):
            raise BadRequest("'code' is missing.")
        sign_in, target = finish_sign_in(
            request._request,
            state=parameters.get("state", ""),
            browser=_browser_of(request),
            refused=bool(parameters.get("error")),
        )
        return redirect_with_tokens(target, sign_in, status=302)


def redirect_with_tokens(target: str, sign_in: SignIn, *, status: int) -> HttpResponse:
    """Lead the browser to ``target`` with the tokens in the query."""
    parameters = {name: str(value) for name, value in sign_in.as_json().items()}
    return HttpResponse(
        status=status,
        headers={
            **NO_STORE,
            "Referrer-Policy": "no-referrer",
            "Location": with_parameters(target, parameters),
        },
    )


def is_own_origin(request: Request) -> bool:
    """Tell whether a form came from a page of this service; browsers name the origin of every form."""
    origin = request.headers.get("Origin")
    if origin is None:
        return True
    base = urlsplit(settings.PUBLIC_BASE_URL)
    return origin_of(origin) == origin_of(f"{base.scheme}://{base.netloc}")


def _browser_of(request: Request) -> str:
    value = request.COOKIES.get(BROWSER_COOKIE, "")
    return value if is_browser_id(value) else ""
