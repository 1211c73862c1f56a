from __future__ import annotations

from django.urls import path

import logs.converters  # noqa: F401  # registers what the paths below name
from logs.api.tree import DaysView, FilesView, HoursView, MonthsView, ObjectView, QueryView

_LOGS = "tenants/<uuid:tenant>/logs/<year:year>"

urlpatterns = [
    path(_LOGS, MonthsView.as_view()),
    path(f"{_LOGS}/<month:month>", DaysView.as_view()),
    path(f"{_LOGS}/<month:month>/<day:day>", HoursView.as_view()),
    path(f"{_LOGS}/<month:month>/<day:day>/<hour:hour>", FilesView.as_view()),
    path(f"{_LOGS}/<month:month>/<day:day>/<hour:hour>/<logfile:file>", ObjectView.as_view()),
    path("tenants/<uuid:tenant>/query", QueryView.as_view()),
]
