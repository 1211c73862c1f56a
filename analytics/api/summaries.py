"""The summaries of a tenant and of one user. Contract: Analytics."""
# ruff: noqa: N803  (the path parameter has the contract's name)

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final

from drf_spectacular.utils import OpenApiParameter

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.routes import route
from accounts.viewsets import AppViewSet
from analytics.api.answers import answer_stored, answer_user
from analytics.models import Kind
from analytics.summaries.documents.day import DailySummary
from analytics.summaries.documents.month import MonthlySummary
from analytics.summaries.documents.opportunities import CacheOpportunities
from analytics.summaries.documents.rules import RuleEffectiveness
from analytics.summaries.documents.users import UsersSummary
from analytics.summaries.documents.year import YearlySummary
from analytics.summaries.periods import HISTORY
from logs.serializers import DAY, MONTH, YEAR
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.http.hal import ETAG, IF_NONE_MATCH
from tenantadmin.lib.http.schema import NOT_MODIFIED
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from django.http import HttpResponseBase
    from rest_framework.request import Request

    from tenantadmin.lib.core.structs import JsonStruct

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

    @route("GET", "/summaries/<year:year>", Level.TENANT, Scope.ANALYTICS_READ, name="summary-year")
    @_summary(YearlySummary, "The yearly summary", YEAR)
    def get_yearly_summary(self, request: Request, tenant: UUID, year: str) -> HttpResponseBase:
        """Totals of a year and the activity of each of its last 365 days."""
        return answer_stored(request, tenant=tenant, kind=Kind.YEAR, period=year)

    @route("GET", "/summaries/<year:year>/rules", Level.TENANT, Scope.ANALYTICS_READ, name="summary-rules")
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
        Scope.ANALYTICS_READ,
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
