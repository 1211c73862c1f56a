"""The nine summaries. Contract: Analytics."""

# The path parameter bears the contract's name.
# ruff: noqa: N803

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar, Final

from drf_spectacular.utils import OpenApiParameter, extend_schema

from accounts.permissions import AppView
from analytics import schemas
from analytics.answers import answer_stored, answer_user
from analytics.models import Kind
from analytics.periods import HISTORY
from logs.api import DAY, MONTH, YEAR
from tenantadmin.http.errors import NotFound
from tenantadmin.http.serializers import read_query

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from rest_framework import serializers
    from rest_framework.request import Request
    from rest_framework.response import Response

_USER: Final = OpenApiParameter(
    "userId", str, OpenApiParameter.PATH, description="`userName` of the log, percent-encoded."
)


def _described(
    summary: str, response: type[serializers.Serializer[Any]], *parameters: OpenApiParameter
) -> Callable[[Any], Any]:
    return extend_schema(
        tags=["Analytics"],
        summary=summary,
        parameters=[*parameters, OpenApiParameter("If-None-Match", str, OpenApiParameter.HEADER)],
        responses={200: response, 304: None},
    )


class YearView(AppView):
    """Totals of a year and the activity of each of its last 365 days."""

    operations: ClassVar = {"GET": "getYearlySummary"}

    @_described("The yearly summary", schemas.YearlySummary, YEAR)
    def get(self, request: Request, tenant: UUID, year: int) -> Response:
        read_query(None, request)
        return answer_stored(request, tenant=tenant, kind=Kind.YEAR, period=f"{year:04}")


class RulesView(AppView):
    """Hits, misses and saved warehouse time of each rule in a year."""

    operations: ClassVar = {"GET": "getRuleEffectiveness"}

    @_described("How well each rule served in a year", schemas.RuleEffectiveness, YEAR)
    def get(self, request: Request, tenant: UUID, year: int) -> Response:
        read_query(None, request)
        return answer_stored(request, tenant=tenant, kind=Kind.RULES, period=f"{year:04}")


class OpportunitiesView(AppView):
    """Statements that a change of rules would serve from cache, in three lists of at most 50."""

    operations: ClassVar = {"GET": "getCacheOpportunities"}

    @_described("Where caching would save warehouse time", schemas.CacheOpportunities, YEAR)
    def get(self, request: Request, tenant: UUID, year: int) -> Response:
        read_query(None, request)
        return answer_stored(request, tenant=tenant, kind=Kind.OPPORTUNITIES, period=f"{year:04}")


class MonthView(AppView):
    """Totals of a month and its activity by hour of day."""

    operations: ClassVar = {"GET": "getMonthlySummary"}

    @_described("The monthly summary", schemas.MonthlySummary, YEAR, MONTH)
    def get(self, request: Request, tenant: UUID, year: int, month: int) -> Response:
        read_query(None, request)
        return answer_stored(request, tenant=tenant, kind=Kind.MONTH, period=f"{year:04}-{month:02}")


class DayView(AppView):
    """Totals of a day, its activity by hour, and a record per statement."""

    operations: ClassVar = {"GET": "getDailySummary"}

    @_described("The daily summary, with a record per statement", schemas.DailySummary, YEAR, MONTH, DAY)
    def get(self, request: Request, tenant: UUID, year: int, month: int, day: int) -> Response:
        read_query(None, request)
        return answer_stored(request, tenant=tenant, kind=Kind.DAY, period=_day(year, month, day))


class UsersView(AppView):
    """What each user asked, over the whole history."""

    operations: ClassVar = {"GET": "getUsersSummary"}

    @_described("All users of a tenant, over its whole history", schemas.UsersSummary)
    def get(self, request: Request, tenant: UUID) -> Response:
        read_query(None, request)
        return answer_stored(request, tenant=tenant, kind=Kind.USERS, period=HISTORY)


class UserYearView(AppView):
    """As the yearly summary, of one user."""

    operations: ClassVar = {"GET": "getUserYearlySummary"}

    @_described("A user's yearly summary", schemas.YearlySummary, _USER, YEAR)
    def get(self, request: Request, tenant: UUID, *, userId: str, year: int) -> Response:
        read_query(None, request)
        return answer_user(request, tenant=tenant, user=userId, period=f"{year:04}")


class UserMonthView(AppView):
    """As the monthly summary, of one user."""

    operations: ClassVar = {"GET": "getUserMonthlySummary"}

    @_described("A user's monthly summary", schemas.MonthlySummary, _USER, YEAR, MONTH)
    def get(
        self,
        request: Request,
        tenant: UUID,
        *,
        userId: str,
        year: int,
        month: int,
    ) -> Response:
        read_query(None, request)
        return answer_user(request, tenant=tenant, user=userId, period=f"{year:04}-{month:02}")


class UserDayView(AppView):
    """As the daily summary, of one user."""

    operations: ClassVar = {"GET": "getUserDailySummary"}

    @_described("A user's daily summary", schemas.DailySummary, _USER, YEAR, MONTH, DAY)
    def get(
        self,
        request: Request,
        tenant: UUID,
        *,
        userId: str,
        year: int,
        month: int,
        day: int,
    ) -> Response:
        read_query(None, request)
        return answer_user(request, tenant=tenant, user=userId, period=_day(year, month, day))


def _day(year: int, month: int, day: int) -> str:
    """The period of a day.

    Raises:
        NotFound: there is no such day.
    """
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        raise NotFound from None
