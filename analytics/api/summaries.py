"""Summaries, and the published queries that give the same numbers."""

# ruff: noqa: N815  (fields have the names of the JSON members)
# ruff: noqa: N803  (the path parameter has the contract's name)

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import IO, TYPE_CHECKING, Any, Final
from uuid import UUID

from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.utils import OpenApiExample, OpenApiParameter
from rest_framework import serializers
from rest_framework.response import Response

from accounts.access.scopes import Level, Scope
from accounts.routes import route
from accounts.viewsets import AppViewSet, require_tenant_scope
from analytics.models import Kind
from analytics.numbers.documents import DailySummary, MonthlySummary
from analytics.numbers.merged import HISTORY
from analytics.numbers.store import read_document
from analytics.numbers.users import find_user_source, user_document
from analytics.numbers.yearly import CacheOpportunities, RuleEffectiveness, UsersSummary, YearlySummary
from analytics.published.queries import QUERIES, PublishedQuery
from analytics.published.verify import (
    DOCUMENTS,
    DocumentKey,
    InvalidKey,
    Verification,
    check_key,
    verify_document,
)
from analytics.watch.alert_kinds import ALERT_QUERIES
from logs.audit import Reader
from logs.serializers import DAY, MONTH, YEAR
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.http.hal import ETAG, IF_NONE_MATCH, not_modified
from tenantadmin.lib.http.schema import NOT_MODIFIED, refusal
from tenantadmin.lib.http.serializers import OneOfField, StrictCharField, StrictSerializer
from tenantadmin.lib.http.streaming import FileChunks
from tenantadmin.lib.http.viewsets import operation
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    from rest_framework.request import Request


class VerificationBody(StrictSerializer):
    """Which document to verify."""

    document = OneOfField(choices=DOCUMENTS)
    period = StrictCharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=10,
        help_text="`2026-03-01`, `2026-03` or `2026`; for `users`, which covers the whole history, empty.",
    )
    userId = StrictCharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        help_text="`userName` of the log, for the day, month or year of one user.",
    )

    def validate(self, attrs: Any) -> Any:
        try:
            check_key(attrs["document"], attrs["period"], is_of_user="userId" in attrs)
        except InvalidKey as error:
            detail = serializers.ErrorDetail(str(error), "invalid")
            raise serializers.ValidationError({error.field: [detail]}) from error
        return attrs


_NO_DATA: Final = "There is no log entry in this period."


def answer_stored(request: Request, *, tenant: UUID, kind: Kind, period: str) -> HttpResponseBase:
    """Answer with a stored document.

    Raises:
        NotFound: the period has no entry.
    """
    document = read_document(tenant=tenant, kind=kind, period=period)
    if document is None:
        raise NotFound(_NO_DATA)
    unchanged = not_modified(request, document.etag)
    if unchanged is not None:
        return unchanged
    if not document.file:
        return Response(document.body, headers={"ETag": document.etag})
    return _send(default_store().open(document.file), etag=document.etag, size=document.bytes)


def answer_user(request: Request, *, tenant: UUID, user: str, period: str) -> HttpResponseBase:
    """Answer with a user's document from the cache, or compute it from the rollups.

    Raises:
        NotFound: the user has no entry in the period.
    """
    source = find_user_source(tenant=tenant, user=user, period=period)
    if source is None:
        raise NotFound(_NO_DATA)
    # A client that sends this tag has the document. A client that sends * may not have it.
    if_none_match = request.headers.get("If-None-Match", "").strip()
    if if_none_match != "*" and (unchanged := not_modified(request, source.etag)) is not None:
        return unchanged
    document = user_document(default_store(), source)
    if document is None:
        raise NotFound(_NO_DATA)
    unchanged = not_modified(request, source.etag)
    if isinstance(document, bytes):
        return unchanged or Response(document, headers={"ETag": source.etag})
    if unchanged is not None:
        document.close()
        return unchanged
    size = document.seek(0, 2)
    document.seek(0)
    return _send(document, etag=source.etag, size=size)


def _send(file: IO[bytes], *, etag: str, size: int) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        FileChunks(file, size=size),
        content_type="application/json",
        headers={"ETag": etag, "Content-Length": str(size)},
    )


_USER: Final = OpenApiParameter(
    "userId", str, OpenApiParameter.PATH, description="`userName` of the log, percent-encoded."
)


def _summary(
    document: type[JsonStruct], summary: str, *path: OpenApiParameter
) -> Callable[[Callable[..., HttpResponseBase]], Callable[..., HttpResponseBase]]:
    """Declare an action that returns ``document`` with its entity tag."""
    return operation(
        summary=summary,
        path=path,
        headers=[IF_NONE_MATCH, ETAG],
        responses={200: document, 304: NOT_MODIFIED},
    )


class SummaryViewSet(AppViewSet):
    """The stored summaries of a tenant."""

    tag = "Analytics"
    prefix = "tenants/<uuid:tenant>"

    @route("GET", "/summaries/<year:year>", Level.TENANT, Scope.ANALYTICS_NUMBERS, name="summary-year")
    @_summary(YearlySummary, "The yearly summary", YEAR)
    def get_yearly_summary(self, request: Request, tenant: UUID, year: str) -> HttpResponseBase:
        """Totals of a year and the activity of each of its last 365 days."""
        return answer_stored(request, tenant=tenant, kind=Kind.YEAR, period=year)

    @route("GET", "/summaries/<year:year>/rules", Level.TENANT, Scope.ANALYTICS_NUMBERS, name="summary-rules")
    @_summary(RuleEffectiveness, "The effectiveness of each rule in a year", YEAR)
    def get_rule_effectiveness(self, request: Request, tenant: UUID, year: str) -> HttpResponseBase:
        """Hits, misses and saved warehouse time of each rule in a year."""
        return answer_stored(request, tenant=tenant, kind=Kind.RULES, period=year)

    @route(
        "GET",
        "/summaries/<year:year>/opportunities",
        Level.TENANT,
        Scope.ANALYTICS_READ,
        name="summary-opportunities",
    )
    @_summary(CacheOpportunities, "Where caching would save warehouse time", YEAR)
    def get_cache_opportunities(self, request: Request, tenant: UUID, year: str) -> HttpResponseBase:
        """Statements that a change of rules would serve from cache, in three lists of at most 50."""
        return answer_stored(request, tenant=tenant, kind=Kind.OPPORTUNITIES, period=year)

    @route(
        "GET",
        "/summaries/<year:year>/<month:month>",
        Level.TENANT,
        Scope.ANALYTICS_NUMBERS,
        name="summary-month",
    )
    @_summary(MonthlySummary, "The monthly summary", YEAR, MONTH)
    def get_monthly_summary(self, request: Request, tenant: UUID, year: str, month: str) -> HttpResponseBase:
        """Totals of a month and its activity by hour of day."""
        return answer_stored(request, tenant=tenant, kind=Kind.MONTH, period=f"{year}-{month}")

    @route(
        "GET",
        "/summaries/<year:year>/<month:month>/<day:day>",
        Level.TENANT,
        Scope.ANALYTICS_READ,
        name="summary-day",
    )
    @_summary(DailySummary, "The daily summary, with a record per statement", YEAR, MONTH, DAY)
    def get_daily_summary(
        self, request: Request, tenant: UUID, year: str, month: str, day: str
    ) -> HttpResponseBase:
        """Totals of a day, its activity by hour, and a record per statement."""
        return answer_stored(request, tenant=tenant, kind=Kind.DAY, period=_day(year, month, day))

    @route("GET", "/users", Level.TENANT, Scope.ANALYTICS_USERS, name="summary-users")
    @_summary(UsersSummary, "All users of a tenant, over its whole history")
    def get_users_summary(self, request: Request, tenant: UUID) -> HttpResponseBase:
        """The totals of each user over the whole history."""
        return answer_stored(request, tenant=tenant, kind=Kind.USERS, period=HISTORY)


class UserSummaryViewSet(AppViewSet):
    """The summaries of one user, computed on request."""

    tag = "Analytics"
    prefix = "tenants/<uuid:tenant>/users/<userid:userId>/<year:year>"

    @route("GET", "", Level.TENANT, Scope.ANALYTICS_USERS, name="user-summary-year")
    @_summary(YearlySummary, "A user's yearly summary", _USER, YEAR)
    def get_user_yearly_summary(
        self, request: Request, tenant: UUID, userId: str, year: str
    ) -> HttpResponseBase:
        """The yearly summary of one user."""
        return answer_user(request, tenant=tenant, user=userId, period=year)

    @route("GET", "/<month:month>", Level.TENANT, Scope.ANALYTICS_USERS, name="user-summary-month")
    @_summary(MonthlySummary, "A user's monthly summary", _USER, YEAR, MONTH)
    def get_user_monthly_summary(
        self, request: Request, tenant: UUID, userId: str, year: str, month: str
    ) -> HttpResponseBase:
        """The monthly summary of one user."""
        return answer_user(request, tenant=tenant, user=userId, period=f"{year}-{month}")

    @route("GET", "/<month:month>/<day:day>", Level.TENANT, Scope.ANALYTICS_USERS, name="user-summary-day")
    @_summary(DailySummary, "A user's daily summary", _USER, YEAR, MONTH, DAY)
    def get_user_daily_summary(
        self, request: Request, tenant: UUID, userId: str, year: str, month: str, day: str
    ) -> HttpResponseBase:
        """The daily summary of one user."""
        return answer_user(request, tenant=tenant, user=userId, period=_day(year, month, day))


def _day(year: str, month: str, day: str) -> str:
    """Return the period of a day.

    Raises:
        NotFound: there is no such day.
    """
    try:
        return date.fromisoformat(f"{year}-{month}-{day}").isoformat()
    except ValueError:
        raise NotFound from None


class PublishedQueries(JsonStruct):
    queries: list[PublishedQuery]


class PublishedQueryViewSet(AppViewSet):
    """The SQL that the numbers of summaries equal."""

    tag = "Analytics"

    @route("GET", "analytics/queries", Level.SERVICE, name="published-queries")
    @operation(
        summary="The SQL over proxy_logs that each number of a summary or an alert equals",
        responses={200: PublishedQueries},
    )
    def list_published_queries(self, request: Request) -> Response:
        """Each query gives fields of a document, the elements of one of its arrays, or an alert's number."""
        return Response(PublishedQueries(queries=[*QUERIES.values(), *ALERT_QUERIES.values()]))


class VerificationViewSet(AppViewSet):
    """Verifications of a tenant's documents."""

    tag = "Analytics"

    @route(
        "POST",
        "tenants/<uuid:tenant>/verifications",
        Level.TENANT,
        Scope.ANALYTICS_READ,
        also=Scope.LOGS_QUERY,
        notes="documents about users need `analytics:users` too",
        name="verifications",
        needs_no_reason=True,
    )
    @operation(
        summary="Compare a document with the published queries",
        body=VerificationBody,
        responses={
            200: Verification,
            409: refusal(409, "The document was built again during both attempts: retry in a minute."),
        },
        examples=[
            OpenApiExample("A day", value={"document": "day", "period": "2026-03-01"}, request_only=True)
        ],
    )
    def verify_document(self, request: Request, tenant: UUID) -> Response:
        """Runs the queries in the locked engine, on the builds that the document was made of.

        The queries run with the hour of each entry's prefix and the order of the entries, which `proxy_logs`
        does not show; without entries that need them, the statements in `queries` give the same numbers.
        """
        key = DocumentKey(tenant, self.body["document"], self.body["period"], self.body.get("userId"))
        if key.is_about_users:
            require_tenant_scope(self.principal, tenant_id=tenant, scope=Scope.ANALYTICS_USERS)
        reader = Reader.of_request(self.principal.email)
        return Response(verify_document(default_store(), key=key, reader=reader))
