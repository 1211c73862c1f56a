"""``/auth/magic-link`` and ``/auth/magic-link/verify``. Contract: Discovery and sign-in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.http import HttpResponse
from django.template.loader import render_to_string
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.api.signin import SignInTokens, is_own_origin, redirect_with_tokens
from accounts.api.tokens import NO_STORE
from accounts.emails import MAX_EMAIL_LENGTH, check_email
from accounts.permissions import AppView
from accounts.signin.links import request_link, require_links, verify_link
from accounts.signin.redirects import MAX_REDIRECT_LENGTH
from tenantadmin.core.addresses import client_address
from tenantadmin.core.errors import ApiError, Forbidden
from tenantadmin.http.fields import StrictCharField
from tenantadmin.http.handler import as_api_error
from tenantadmin.http.parsers import StrictFormParser, StrictJsonParser
from tenantadmin.http.reading import read_body, read_query
from tenantadmin.http.schema import refusal
from tenantadmin.http.serializers import StrictSerializer

if TYPE_CHECKING:
    from rest_framework.request import Request

_PAGE: Final = "/auth/magic-link/verify"
_PAGE_HEADERS: Final = {
    **NO_STORE,
    "Referrer-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
}
_MAX_TOKEN: Final = 4096


class EmailAddressField(StrictCharField):
    """An email address; becomes the key under which the user is stored."""

    def __init__(self) -> None:
        super().__init__(max_length=MAX_EMAIL_LENGTH)

    def to_internal_value(self, data: Any) -> str:
        try:
            return check_email(super().to_internal_value(data))
        except ValueError as error:
            raise serializers.ValidationError(str(error), code="invalid-email") from error


class MagicLinkRequest(StrictSerializer):
    """``redirect``: where signing in leads; beyond the allowed domains it is the dashboard's root."""

    email = EmailAddressField()
    redirect = StrictCharField(max_length=MAX_REDIRECT_LENGTH, required=False, allow_blank=True, default="/")


class MagicLinkSent(serializers.Serializer[Any]):
    status = serializers.ChoiceField(choices=["sent"])


class MagicLinkProof(StrictSerializer):
    """``token`` is the `t` of the link."""

    token = StrictCharField(max_length=_MAX_TOKEN)
    return_to = StrictCharField(max_length=MAX_REDIRECT_LENGTH, required=False, allow_blank=True)


class MagicLinkTokens(SignInTokens):
    return_to = serializers.CharField(help_text="Where to go with the tokens.")


class MagicLinkQuery(StrictSerializer):
    t = StrictCharField(max_length=_MAX_TOKEN, required=False, default="")
    problem = StrictCharField(max_length=40, required=False, default="")


class MagicLinkView(AppView):
    operations: ClassVar = {"POST": "requestMagicLink"}

    @extend_schema(
        tags=["Sign-in"],
        summary="Mail a one-time sign-in link",
        description="The answer is the same for known and unknown addresses.",
        request=MagicLinkRequest,
        responses={
            202: MagicLinkSent,
            **{status: refusal(status) for status in (403, 429, 502, 503)},
        },
        examples=[
            OpenApiExample(
                "A link", value={"email": "ada@example.org", "redirect": "/reports"}, request_only=True
            )
        ],
    )
    def post(self, request: Request) -> Response:
        read_query(None, request)
        body = read_body(MagicLinkRequest, request)
        request_link(email=body["email"], redirect=body["redirect"], address=client_address(request._request))
        return Response({"status": "sent"}, status=202, headers=NO_STORE)


class MagicLinkVerifyView(AppView):
    """GET shows a page whose button POSTs, so that mail scanners that follow links use nothing up."""

    operations: ClassVar = {"GET": "showMagicLink", "POST": "verifyMagicLink"}
    parser_classes = (StrictJsonParser, StrictFormParser)

    @extend_schema(
        tags=["Sign-in"],
        summary="The page that the mailed link opens",
        parameters=[
            OpenApiParameter("t", OpenApiTypes.STR, description="The token of the link."),
            OpenApiParameter("problem", OpenApiTypes.STR, description="Why the button did not sign in."),
        ],
        responses={(200, "text/html"): OpenApiResponse(OpenApiTypes.STR), 503: refusal(503)},
    )
    def get(self, request: Request) -> HttpResponse:
        query = read_query(MagicLinkQuery, request)
        require_links()
        problem = _PROBLEMS.get(query["problem"], "") if query["t"] == "" else ""
        if not problem and not query["t"]:
            problem = _PROBLEMS["unauthorized"]
        page = render_to_string("signin/link.html", {"token": query["t"], "problem": problem})
        return HttpResponse(page, headers=_PAGE_HEADERS)

    @extend_schema(
        tags=["Sign-in"],
        summary="Sign in by a one-time link",
        description="A form, which the page of the link sends, is answered by a redirect with the tokens.",
        request={"application/json": MagicLinkProof, "application/x-www-form-urlencoded": MagicLinkProof},
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
    def post(self, request: Request) -> Response | HttpResponse:
        read_query(None, request)
        body = read_body(MagicLinkProof, request)
        if _is_form(request) and not is_own_origin(request):
            raise Forbidden("The form was not sent by the page of the link.")
        sign_in, target = verify_link(token=body["token"], return_to=body.get("return_to"))
        if _is_form(request):
            return redirect_with_tokens(target, sign_in, status=303)
        return Response({**sign_in.as_json(), "return_to": target}, headers=NO_STORE)

    def handle_exception(self, exc: Exception) -> Response:
        """Lead the sender of a form back to the page, which says what went wrong."""
        error = as_api_error(exc)
        request: Request = self.request
        if request.method == "POST" and isinstance(error, ApiError) and _is_form(request):
            code = error.code if error.code in _PROBLEMS else "unauthorized"
            return Response(status=303, headers={**NO_STORE, "Location": f"{_PAGE}?problem={code}"})
        return super().handle_exception(exc)


_PROBLEMS: Final = {
    "unauthorized": "This link is invalid, expired or already used. Ask for a new one.",
    "forbidden": "This address may not sign in here.",
}


def _is_form(request: Request) -> bool:
    return (request.content_type or "").startswith("application/x-www-form-urlencoded")
