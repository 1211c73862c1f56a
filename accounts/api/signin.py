"""``/auth/login``, ``/auth/callback`` and the magic links. Contract: Discovery and sign-in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal
from urllib.parse import urlencode, urlsplit

import msgspec
from django.conf import settings
from django.http import HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from msgspec import Meta
from rest_framework.response import Response

from accounts.access.scopes import Level
from accounts.api.oauth import NO_STORE, device_of
from accounts.routes import route
from accounts.serializers.signin import (
    CallbackParameters,
    MagicLinkParameters,
    MagicLinkProof,
    MagicLinkRequest,
    SignInParameters,
    StepUpParameters,
)
from accounts.signin.flow import SignIn, return_address
from accounts.signin.links import InvalidLink, look_at_link, request_link, require_links, verify_link
from accounts.signin.providers import (
    SignInProvider,
    authorization_url,
    choose_provider,
    finish_sign_in,
    list_providers,
    take_sign_in,
)
from accounts.signin.redirects import with_parameters
from accounts.signin.staff.login import finish_at_provider, step_up
from accounts.signin.state import BROWSER_COOKIE, Purpose, bind_browser, is_browser_id, new_browser_id
from accounts.viewsets import AppViewSet
from tenantadmin.lib.core.errors import BadRequest, Forbidden, InternalError
from tenantadmin.lib.core.hosts import origin_of
from tenantadmin.lib.core.request_context import current_address
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.http.bodies import StrictFormParser, StrictJsonParser
from tenantadmin.lib.http.hal import LOCATION
from tenantadmin.lib.http.handler import answer_error, as_api_error, wants_page
from tenantadmin.lib.http.schema import refusal
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from rest_framework.request import Request

_PAGE_HEADERS: Final = {
    **NO_STORE,
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src data:; "
    "frame-ancestors 'none'; base-uri 'none'",
}
#: The operations that browsers open as pages. Those that ask for `text/html` get errors as a page, too.
_OPENED: Final = {"start_sign_in", "finish_sign_in", "finish_sign_in_at", "step_up", "show_magic_link"}
_BROWSERS_GET_PAGES: Final = "A browser that asks for `text/html` gets an error as a page that leads on."
#: The message on the page of a link if signing in failed, by error code.
_PROBLEMS: Final = {
    "unauthorized": "This link is invalid, expired or already used.",
    "forbidden": "This address may not sign in here.",
}


class SignInProviders(JsonStruct):
    """The ways of signing in that are configured."""

    providers: list[SignInProvider]
    magic_link: bool


class MagicLinkSent(JsonStruct):
    status: Literal["sent"]


class MagicLinkTokens(SignIn):
    return_to: Annotated[str, Meta(description="Where to go with the tokens.")]


class SignInViewSet(AppViewSet):
    """Signing in at an identity provider, or by a mailed link."""

    tag = "Sign-in"

    @route("GET", "auth/providers", Level.PUBLIC, name="signin-providers")
    @operation(
        summary="How users may sign in",
        description="Identity providers in order, the default first, and whether one-time links are sent.",
        responses={200: SignInProviders},
    )
    def list_sign_in_providers(self, request: Request) -> Response:
        return Response(SignInProviders(providers=list_providers(), magic_link=settings.MAGIC_LINKS_ENABLED))

    @route("GET", "auth/login", Level.PUBLIC, name="login")
    @operation(
        summary="Begin signing in at an identity provider",
        description=_BROWSERS_GET_PAGES,
        query=SignInParameters,
        headers=[LOCATION],
        responses={302: OpenApiResponse(description="To the identity provider's page."), 502: refusal(502)},
    )
    def start_sign_in(self, request: Request) -> HttpResponse:
        browser = _browser_of(request) or new_browser_id()
        page = authorization_url(
            request._request,
            provider=choose_provider(self.query.get("provider", "")),
            redirect=return_address(self.query["redirect"]),
            browser=browser,
        )
        response = HttpResponse(status=302, headers={**NO_STORE, "Location": page})
        bind_browser(response, browser)
        return response

    @route("GET", "auth/callback/<str:provider>", Level.PUBLIC, name="provider-callback")
    @operation(
        summary="Where the identity provider sends the browser back to",
        description=_BROWSERS_GET_PAGES,
        query=CallbackParameters,
        headers=[LOCATION],
        any_query=True,
        responses={
            302: OpenApiResponse(
                description="To where the sign-in was to lead, with `access_token`, `refresh_token` and "
                "`expires_in`."
            ),
            401: refusal(401),
            403: refusal(403),
        },
    )
    def finish_sign_in_at(self, request: Request, provider: str) -> HttpResponse:
        return self._finish(request, provider=provider)

    @route("GET", "auth/callback", Level.PUBLIC, name="callback")
    @operation(
        summary="As `GET /auth/callback/{provider}`, without the provider",
        description="For sign-ins that were begun before there was an address for each provider.",
        query=CallbackParameters,
        headers=[LOCATION],
        any_query=True,
        responses={
            302: OpenApiResponse(description="As `GET /auth/callback/{provider}`."),
            401: refusal(401),
            403: refusal(403),
        },
    )
    def finish_sign_in(self, request: Request) -> HttpResponse:
        return self._finish(request, provider=None)

    def _finish(self, request: Request, *, provider: str | None) -> HttpResponse:
        parameters = request.query_params
        if not parameters.get("code") and not parameters.get("error"):
            raise BadRequest("'code' is missing.")
        choose_provider("")
        pending = take_sign_in(
            state=parameters.get("state", ""), browser=_browser_of(request), provider=provider
        )
        refused = bool(parameters.get("error"))
        if pending.purpose != Purpose.TOKENS:
            return finish_at_provider(request._request, pending, refused=refused)
        sign_in = finish_sign_in(request._request, pending, refused=refused, device=device_of(request))
        return _redirect_with_tokens(pending.redirect, sign_in, status=302)

    @route("GET", "auth/step-up", Level.PUBLIC, name="step-up")
    @operation(
        summary="Sign staff in with a second factor, for acts that answer `second_factor_required`",
        description="For a browser: it shows the pages of the admin site that ask for the second factor, "
        "unless that was proven in the last 15 minutes, and leads back with the tokens of a session that has "
        "proven it.",
        query=StepUpParameters,
        headers=[LOCATION],
        responses={
            302: OpenApiResponse(
                description="To the next page to pass, or to `redirect` with `access_token`, "
                "`refresh_token` and `expires_in`."
            )
        },
    )
    def step_up(self, request: Request) -> HttpResponse:
        answer = step_up(request._request, device=device_of(request))
        if isinstance(answer, HttpResponse):
            return answer
        return _redirect_with_tokens(return_address(self.query["redirect"]), answer, status=302)

    @route("POST", "auth/magic-link", Level.PUBLIC, name="magic-link")
    @operation(
        summary="Mail a one-time sign-in link",
        description="The answer is the same for known and unknown addresses.",
        body=MagicLinkRequest,
        responses={202: MagicLinkSent, **{status: refusal(status) for status in (403, 429, 502, 503)}},
        examples=[
            OpenApiExample(
                "A link", value={"email": "ada@example.org", "redirect": "/reports"}, request_only=True
            )
        ],
    )
    def request_magic_link(self, request: Request) -> Response:
        request_link(
            email=self.body["email"],
            redirect=self.body["redirect"],
            address=current_address(),
        )
        return Response(MagicLinkSent(status="sent"), status=202, headers=NO_STORE)

    @route("GET", "auth/magic-link/verify", Level.PUBLIC, name="verify-magic-link")
    @operation(
        summary="The page that the mailed link opens",
        description="GET only shows a page with a button that POSTs the token, so that mail scanners that "
        "follow links do not use the link up.",
        query=MagicLinkParameters,
        any_query=True,
        responses={(200, "text/html"): OpenApiResponse(OpenApiTypes.STR), 503: refusal(503)},
    )
    def show_magic_link(self, request: Request) -> HttpResponse:
        require_links()
        token = self.query.get("t", "")
        link = look_at_link(token) if token else None
        problem = self.query.get("problem", "")
        if not token or (link and not link.is_open()):
            problem = problem or "unauthorized"
        again = {"email": link.email, "to": urlsplit(link.return_to).fragment, "send": "1"} if link else {}
        context = {
            "title": f"Sign in to {settings.PRODUCT_NAME}",
            "token": token,
            "email": link.email if link else "",
            "service": settings.PUBLIC_BASE_URL,
            "problem": _PROBLEMS.get(problem, problem and _PROBLEMS["unauthorized"]),
            "again": f"{settings.DASHBOARD_URL}#/signin?{urlencode(again)}",
        }
        return HttpResponse(render_to_string("signin/link.html", context), headers=_PAGE_HEADERS)

    @route("POST", "auth/magic-link/verify", Level.PUBLIC)
    @operation(
        summary="Sign in by a one-time link",
        description="A form, which the page of the link sends, is answered by a redirect with the tokens.",
        body=MagicLinkProof,
        headers=[LOCATION],
        parsers=(StrictJsonParser, StrictFormParser),
        responses={
            200: MagicLinkTokens,
            303: OpenApiResponse(description="To the form's sender: where to go, with the tokens."),
            **{status: refusal(status) for status in (401, 403, 502, 503)},
        },
        examples=[
            OpenApiExample(
                "The token of a link", value={"token": "8Zk…", "return_to": "/"}, request_only=True
            )
        ],
    )
    def verify_magic_link(self, request: Request) -> Response | HttpResponse:
        if _is_form(request) and not _is_from_own_page(request):
            raise Forbidden("The form was not sent by the page of the link.")
        sign_in, target = verify_link(
            token=self.body["token"], return_to=self.body.get("return_to"), device=device_of(request)
        )
        if _is_form(request):
            return _redirect_with_tokens(target, sign_in, status=303)
        return Response(MagicLinkTokens.of(sign_in, return_to=target), headers=NO_STORE)

    def handle_exception(self, exc: Exception) -> Response:
        """Show the error on a page if a browser opened the address or sent the form of the link's page."""
        error = as_api_error(exc)
        if self.action == "verify_magic_link" and error is not None and _is_form(self.request):
            code = error.code if error.code in _PROBLEMS else "unauthorized"
            # The page names the address of a link that is known, and offers a new one.
            known = {"t": self.body["token"]} if isinstance(exc, InvalidLink) else {}
            page = f"{reverse('verify-magic-link')}?{urlencode({**known, 'problem': code})}"
            return Response(status=303, headers={**NO_STORE, "Location": page})
        answer = super().handle_exception(exc)
        if self.action not in _OPENED or not wants_page(self.request._request):
            return answer
        shown = answer_error(self.request._request, error or InternalError())
        for name, value in _PAGE_HEADERS.items():
            shown[name] = value
        return shown  # type: ignore[return-value]  # DRF takes any response


def _redirect_with_tokens(target: str, sign_in: SignIn, *, status: int) -> HttpResponse:
    parameters = {name: str(value) for name, value in msgspec.structs.asdict(sign_in).items()}
    return HttpResponse(
        status=status,
        headers={
            **NO_STORE,
            "Referrer-Policy": "no-referrer",
            "Location": with_parameters(target, parameters),
        },
    )


def _is_from_own_page(request: Request) -> bool:
    """Return True if a page of this service sent the form.

    Browsers say so in ``Sec-Fetch-Site``, over HTTPS and to localhost. The page has no referrer, so its
    ``Origin`` is ``null``; other pages send an origin.
    """
    if site := request.headers.get("Sec-Fetch-Site"):
        return site == "same-origin"
    origin = request.headers.get("Origin", "null")
    if origin == "null":
        return True
    base = urlsplit(settings.PUBLIC_BASE_URL)
    return origin_of(origin) == origin_of(f"{base.scheme}://{base.netloc}")


def _is_form(request: Request) -> bool:
    return (request.content_type or "").startswith("application/x-www-form-urlencoded")


def _browser_of(request: Request) -> str:
    value = request.COOKIES.get(BROWSER_COOKIE, "")
    return value if is_browser_id(value) else ""
