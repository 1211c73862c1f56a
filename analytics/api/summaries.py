"""The nine summaries. Contract: Analytics."""

# The path parameter bears the contract's name.
# ruff: noqa: N803

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar, Final

from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view

from accounts.permissions import AppView
from analytics import serializers as schemas
from analytics.models import Kind
from analytics.summaries.answers import answer_stored, answer_user
from analytics.summaries.periods import HISTORY
from logs.api.tree import DAY, MONTH, YEAR
from tenantadmin.core.errors import NotFound
from tenantadmin.http.parameters import ETAG, IF_NONE_MATCH
from tenantadmin.http.reading import read_query
from tenantadmin.http.schema import NOT_MODIFIED

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from django.http import HttpResponseBase
    from rest_framework import serializers
    from rest_framework.request import Request

_USER: Final = OpenApiParameter(
    "userId", str, OpenApiParameter.PATH, description="`userName` of the log, percent-encoded."
)


def _described(
    summary: str, response: type[serializers.Serializer[Any]], *parameters: OpenApiParameter
) -> Callable[[Any], Any]:
    return extend_schema(
        tags=["Analytics"],
        summary=summary,
        parameters=[*parameters, IF_NONE_MATCH, ETAG],
        responses={200: response, 304: NOT_MODIFIED},
    )


class _OfYear(AppView):
    """A stored document of a year."""

    kind: ClassVar[Kind]

    def get(self, request: Request, tenant: UUID, year: int) -> HttpResponseBase:
        read_query(None, request)
        return answer_stored(request, tenant=tenant, kind=self.kind, period=f"{year:04}")


@extend_schema_view(get=_described("The yearly summary", schemas.YearlySummary, YEAR))
class YearView(_OfYear):
    """Totals of a year and the activity of each of its last 365 days."""

    operations: ClassVar = {"GET": "getYearlySummary"}
    kind = Kind.YEAR


@extend_schema_view(get=_described("How well each rule served in a year", schemas.RuleEffectiveness, YEAR))
class RulesView(_OfYear):
    """Hits, misses and saved warehouse time of each rule in a year."""

    operations: ClassVar = {"GET": "getRuleEffectiveness"}
    kind = Kind.RULES


@extend_schema_view(
    get=_described("Where caching would save warehouse time", schemas.CacheOpportunities, YEAR)
)
class OpportunitiesView(_OfYear):
    """Statements that a change of rules would serve from cache, in three lists of at most 50."""

    operations: ClassVar = {"GET": "getCacheOpportunities"}
    kind = Kind.OPPORTUNITIES


class MonthView(AppView):
    """Totals of a month and its activity by hour of day."""

    operations: ClassVar = {"GET": "getMonthlySummary"}

    @_described("The monthly summary", schemas.MonthlySummary, YEAR, MONTH)
    def get(self, request: Request, tenant: UUID, year: int, month: int) -> HttpResponseBase:
        read_query(None, request)
        return answer_stored(request, tenant=tenant, kind=Kind.MONTH, period=f"{year:04}-{month:02}")


class DayView(AppView):
    """Totals of a day, its activity by hour, and a record per statement."""

    operations: ClassVar = {"GET": "getDailySummary"}

    @_described("The daily summary, with a record per statement", schemas.DailySummary, YEAR, MONTH, DAY)
    def get(self, request: Request, tenant: UUID, year: int, month: int, day: int) -> HttpResponseBase:
        read_query(None, request)
        return answer_stored(request, tenant=tenant, kind=Kind.DAY, period=_day(year, month, day))


class UsersView(AppView):
    """What each user asked, over the whole history."""

    operations: ClassVar = {"GET": "getUsersSummary"}

    @_described("All users of a tenant, over its whole history", schemas.UsersSummary)
    def get(self, request: Request, tenant: UUID) -> HttpResponseBase:
        read_query(None, request)
        return answer_stored(request, tenant=tenant, kind=Kind.USERS, period=HISTORY)


class UserYearView(AppView):
    """As the yearly summary, of one user."""

    operations: ClassVar = {"GET": "getUserYearlySummary"}

    @_described("A user's yearly summary", schemas.YearlySummary, _USER, YEAR)
    def get(self, request: Request, tenant: UUID, *, userId: str, year: int) -> HttpResponseBase:
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
    ) -> HttpResponseBase:
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
    ) -> HttpResponseBase:
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
