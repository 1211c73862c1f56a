"""Digests, their mail preferences, and the exchanges with a language model. Contract: docs/digests.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.http import HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import urlencode
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.resources import require_tenant_owner
from accounts.access.scopes import Scope
from accounts.api.oauth import NO_STORE
from accounts.invitations import refuse_invitations, refused_address
from accounts.routes import route
from accounts.viewsets import AppViewSet
from analytics.digest.model_exchanges import ModelExchangeDocument, list_exchanges
from analytics.digest.preferences import (
    DigestPreferenceDocument,
    InvalidUnsubscribeLink,
    Subscription,
    list_preferences,
    read_unsubscribe_token,
    set_preference,
    unsubscribe,
)
from analytics.digest.stored import (
    FORMS,
    JSON,
    DigestDocument,
    digest_document,
    etag_of,
    read_digest,
    render_digest,
)
from analytics.digest.verdict.leaks import find_closing_of_all
from analytics.serializers.digests import DigestPreferenceBody, UnsubscribeBody, UnsubscribeParameters
from logs.serializers import DAY, MONTH, YEAR
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.http.hal import ETAG, IF_NONE_MATCH, ItemList, links, not_modified
from tenantadmin.lib.http.parsers import StrictFormParser, StrictJsonParser, preferred_media_type
from tenantadmin.lib.http.schema import NOT_MODIFIED, refusal
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

_INVITATIONS: Final = "invitations"
_WEEK: Final = OpenApiParameter(
    "week",
    {"type": "string", "pattern": "^(0[1-9]|[1-4][0-9]|5[0-3])$"},
    OpenApiParameter.PATH,
    description="A week of ISO 8601, zero-padded. Its year may begin days before or after January.",
)
_FORM_RESPONSES: Final = {
    200: DigestDocument,
    (200, "text/markdown"): OpenApiTypes.STR,
    (200, "text/plain"): OpenApiTypes.STR,
    304: NOT_MODIFIED,
    406: refusal(406),
}
_PAGE_HEADERS: Final = {
    **NO_STORE,
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
}


class DigestPreferences(ItemList):
    digests: list[DigestPreferenceDocument]


class ModelExchanges(JsonStruct):
    exchanges: list[ModelExchangeDocument]


class DigestViewSet(AppViewSet):
    """The digests of a tenant."""

    tag = "Digests"
    prefix = "tenants/<uuid:tenant>"

    @route(
        "GET",
        "/digests/<year:year>/<month:month>/<day:day>",
        Level.TENANT,
        Scope.ANALYTICS_READ,
        name="digest-day",
    )
    @operation(
        summary="The digest of a day",
        path=(YEAR, MONTH, DAY),
        headers=[IF_NONE_MATCH, ETAG],
        responses=_FORM_RESPONSES,
    )
    def get_daily_digest(
        self, request: Request, tenant: UUID, year: str, month: str, day: str
    ) -> Response | HttpResponse:
        """What happened, each number with the SQL that gives it. There is one about an hour after the day.

        `Accept` chooses JSON, markdown or plain text.
        """
        return self._answer(tenant, f"{year}-{month}-{day}")

    @route(
        "GET",
        "/digests/<year:year>/weeks/<week:week>",
        Level.TENANT,
        Scope.ANALYTICS_READ,
        name="digest-week",
    )
    @operation(
        summary="The digest of a week",
        path=(YEAR, _WEEK),
        headers=[IF_NONE_MATCH, ETAG],
        responses=_FORM_RESPONSES,
    )
    def get_weekly_digest(
        self, request: Request, tenant: UUID, year: str, week: str
    ) -> Response | HttpResponse:
        """As the digest of a day, from Monday to Sunday."""
        return self._answer(tenant, f"{year}-W{week}")

    @route(
        "GET",
        "/model-exchanges",
        Level.TENANT,
        Scope.CONFIG_READ,
        notes="owners of the tenant and platform admins",
        name="model-exchanges",
    )
    @operation(
        summary="What the language model was sent about the tenant, and what it answered",
        responses={200: ModelExchanges},
    )
    def list_model_exchanges(self, request: Request, tenant: UUID) -> Response:
        """The newest 100. A tenant opts in by the label `llm` = `on`."""
        require_tenant_owner(self.principal, tenant)
        return Response(ModelExchanges(exchanges=list_exchanges(tenant)))

    def _answer(self, tenant: UUID, period: str) -> Response | HttpResponse:
        media_type = preferred_media_type(self.request.headers.get("Accept", ""), (JSON, *FORMS))
        digest = read_digest(tenant=tenant, period=period)
        closing = find_closing_of_all([digest])
        headers = {"ETag": etag_of(digest, media_type, closing), "Vary": "Accept"}
        unchanged = not_modified(self.request, headers["ETag"])
        if unchanged is not None:
            unchanged["Vary"] = "Accept"
            return unchanged
        if media_type == JSON:
            return Response(digest_document(digest, closing), headers=headers)
        return HttpResponse(
            render_digest(digest, media_type), content_type=f"{media_type}; charset=utf-8", headers=headers
        )


class DigestMailViewSet(AppViewSet):
    """Which digests a user gets by mail."""

    tag = "Digests"
    prefix = "users/<email:email>/digests"

    @route("GET", "", Level.SELF, Scope.USERS_READ, name="user-digests")
    @operation(summary="Which digests the user gets by mail", responses={200: DigestPreferences})
    def list_digest_preferences(self, request: Request, email: str) -> Response:
        """All tenants whose digests the user may read by membership or grant."""
        own_links = links(
            self_href=reverse("user-digests", kwargs={"email": email}),
            parent=reverse("user", kwargs={"email": email}),
            items=(),
        )
        return Response(DigestPreferences(links=own_links, digests=list_preferences(email)))

    @route("PUT", "/<uuid:tenant>", Level.SELF, Scope.USERS_WRITE, name="user-digest")
    @operation(
        summary="Choose which digests of a tenant the user gets by mail",
        body=DigestPreferenceBody,
        responses={200: DigestPreferenceDocument},
    )
    def set_digest_preference(self, request: Request, email: str, tenant: UUID) -> Response:
        """`daily`, `weekly` or `off`. Each mail has a link that sets it to `off`."""
        return Response(
            set_preference(
                email=email,
                tenant_id=tenant,
                frequency=self.body["frequency"],
                actor=self.principal.email,
            )
        )


class UnsubscribeViewSet(AppViewSet):
    """The link of a mail that ends such mails, without signing in (RFC 8058)."""

    tag = "Digests"

    @route("GET", "digests/unsubscribe", Level.PUBLIC, name="digest-unsubscribe")
    @operation(
        summary="The page that the link of a mailed digest or invitation opens, to end these mails",
        query=UnsubscribeParameters,
        responses={(200, "text/html"): OpenApiResponse(OpenApiTypes.STR)},
    )
    def show_unsubscribe(self, request: Request) -> HttpResponse:
        """Only asks: programs that follow the links of a mail change nothing."""
        token = self.query.get("t", "")
        try:
            mails = _INVITATIONS if refused_address(token) else _digests(read_unsubscribe_token(token))
        except InvalidUnsubscribeLink as error:
            return _page("", problem=error.text)
        return _page(mails, action=f"{request.path}?{urlencode({'t': token})}")

    @route("POST", "digests/unsubscribe", Level.PUBLIC)
    @operation(
        summary="End the mails of digests about a tenant to a user, or of all invitations to an address",
        query=UnsubscribeParameters,
        body=UnsubscribeBody,
        parsers=(StrictJsonParser, StrictFormParser, MultiPartParser),
        responses={(200, "text/html"): OpenApiResponse(OpenApiTypes.STR)},
    )
    def unsubscribe(self, request: Request) -> HttpResponse:
        """For the button of the page, and for mail programs. No sign-in is needed: `t` is signed."""
        token = self.query.get("t", "")
        if email := refused_address(token):
            refuse_invitations(email)
            return _page(_INVITATIONS, is_done=True)
        return _page(_digests(unsubscribe(token)), is_done=True)


def _digests(subscription: Subscription) -> str:
    return f"digests of {subscription.tenant_name}" if subscription.tenant_name else "digests"


def _page(mails: str, **context: object) -> HttpResponse:
    content = {"title": "Mails of the Gateway", "mails": mails, **context}
    page = render_to_string("digest/unsubscribe.html", content)
    return HttpResponse(page, headers=_PAGE_HEADERS)
