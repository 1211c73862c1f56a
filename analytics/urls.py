from __future__ import annotations

from django.urls import path, register_converter

import logs.converters  # noqa: F401  # both register what the paths below name
from analytics.api.summaries import (
    DayView,
    MonthView,
    OpportunitiesView,
    RulesView,
    UserDayView,
    UserMonthView,
    UsersView,
    UserYearView,
    YearView,
)
from analytics.converters import UserIdConverter

register_converter(UserIdConverter, "userid")

_SUMMARIES = "tenants/<uuid:tenant>/summaries/<year:year>"
_USER = "tenants/<uuid:tenant>/users/<userid:userId>"

urlpatterns = [
    path(_SUMMARIES, YearView.as_view()),
    path(f"{_SUMMARIES}/rules", RulesView.as_view()),
    path(f"{_SUMMARIES}/opportunities", OpportunitiesView.as_view()),
    path(f"{_SUMMARIES}/<month:month>", MonthView.as_view()),
    path(f"{_SUMMARIES}/<month:month>/<day:day>", DayView.as_view()),
    path("tenants/<uuid:tenant>/users", UsersView.as_view()),
    path(f"{_USER}/<year:year>/<month:month>/<day:day>", UserDayView.as_view()),
    path(f"{_USER}/<year:year>/<month:month>", UserMonthView.as_view()),
    path(f"{_USER}/<year:year>", UserYearView.as_view()),
]
