"""Digests, their mails, and the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec
from django.conf import settings
from django.http import HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import urlencode
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from accounts.access.resources import require_tenant_owner
from accounts.access.scopes import Level, Scope
from accounts.api.oauth import NO_STORE
from accounts.invitations import refuse_invitations, refused_address
from accounts.routes import route
from accounts.serializers.history import PageParameters
from accounts.viewsets import AppViewSet
from analytics.advice.recommend import describe_open_recommendations
from analytics.jobs.digests import ModelExchangeDocument, list_exchanges
from analytics.models import DigestFrequency
from analytics.reports.weeks import TenantWeek, list_weeks
from analytics.watch.preferences import (
    DigestPreferenceDocument,
    InvalidUnsubscribeLink,
    Subscription,
    list_preferences,
    read_unsubscribe_token,
    set_preference,
    unsubscribe,
)
from analytics.watch.verdict import find_closing_of_all
from analytics.words.digests import (
    FORMS,
    JSON,
    DigestDocument,
    digest_document,
    etag_of,
    read_digest,
    render_digest,
)
from analytics.words.verdict import Verdict, read_verdict
from logs.serializers import DAY, MONTH, YEAR
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.http.bodies import StrictFormParser, StrictJsonParser, preferred_media_type
from tenantadmin.lib.http.hal import (
    ANY_ID,
    ETAG,
    IF_NONE_MATCH,
    ItemList,
    PageLinks,
    hrefs,
    item,
    not_modified,
    page_links,
)
from tenantadmin.lib.http.schema import NOT_MODIFIED, refusal
from tenantadmin.lib.http.serializers import OneOfField, StrictCharField, StrictSerializer
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from rest_framework.request import Request


class DigestPreferenceBody(StrictSerializer):
    """Which digests to get."""

    frequency = OneOfField(choices=DigestFrequency.values)


class UnsubscribeBody(StrictSerializer):
    """What RFC 8058 has mail programs send, as a form."""

    may_be_absent = True

    def get_fields(self) -> dict[str, Any]:
        return {"List-Unsubscribe": StrictCharField(required=False, help_text="`One-Click`.")}


class UnsubscribeParameters(StrictSerializer):
    """The signed token of a mail."""

    t = StrictCharField(max_length=1000, required=False, allow_blank=True, help_text="The token of the link.")


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
        Scope.ANALYTICS_NUMBERS,
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
        Scope.ANALYTICS_NUMBERS,
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
        return Response(DigestPreferences(links=self.links("user"), digests=list_preferences(email)))

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
    content = {"title": f"Mails of {settings.PRODUCT_NAME}", "mails": mails, **context}
    page = render_to_string("digest/unsubscribe.html", content)
    return HttpResponse(page, headers=_PAGE_HEADERS)


class TenantWeeks(JsonStruct):
    """The last week of tenants, by id, each with a link to the tenant."""

    links: PageLinks = msgspec.field(name="_links")
    weeks: list[TenantWeek]


class VerdictViewSet(AppViewSet):
    """How tenants are."""

    tag = "Analytics"

    @route("GET", "tenants/<uuid:tenant>/verdict", Level.TENANT, Scope.ANALYTICS_NUMBERS, name="verdict")
    @operation(summary="How the tenant is, in one sentence", responses={200: Verdict})
    def get_verdict(self, request: Request, tenant: UUID) -> Response:
        """From the findings of its digests of the last seven days, and its history. Reads no log."""
        advice = describe_open_recommendations(tenant)
        return Response(msgspec.structs.replace(read_verdict(tenant), advice=advice))

    @route(
        "GET",
        "tenants/weeks",
        Level.SERVICE,
        Scope.ANALYTICS_NUMBERS,
        notes="lists the tenants on which the PAT has the scope",
        name="tenant-weeks",
    )
    @operation(
        summary="The last week of the caller's tenants",
        description="Requests, hit rate and warehouse time in the seven days up to the last day of each log. "
        "Reads no log.",
        query=PageParameters,
        responses={200: TenantWeeks},
    )
    def list_tenant_weeks(self, request: Request) -> Response:
        weeks, cursor = list_weeks(self.principal, limit=self.query["limit"], cursor=self.query.get("cursor"))
        href = hrefs("tenant", tenant=ANY_ID)
        items = [item(str(week.tenant_id), href(week.tenant_id)) for week in weeks]
        links = page_links(request, parent=reverse("contract"), items=items, cursor=cursor)
        return Response(TenantWeeks(links=links, weeks=weeks))
