from __future__ import annotations

from django.urls import register_converter
from django.urls.converters import StringConverter

from accounts.routes import url_patterns
from logs.api.notifications import NotificationViewSet
from logs.api.query import QueryViewSet
from logs.api.tree import LogTreeViewSet


class YearConverter(StringConverter):
    """``0001`` to ``9999``."""

    regex = "(?!0000)[0-9]{4}"


class MonthConverter(StringConverter):
    """``01`` to ``12``."""

    regex = "0[1-9]|1[0-2]"


class DayConverter(StringConverter):
    """``01`` to ``31``."""

    regex = "0[1-9]|[12][0-9]|3[01]"


class HourConverter(StringConverter):
    """``00`` to ``23``."""

    regex = "[01][0-9]|2[0-3]"


class LogFileConverter(StringConverter):
    """The name of a raw log object."""

    regex = r"[^/]+\.json"


register_converter(YearConverter, "year")


register_converter(MonthConverter, "month")


register_converter(DayConverter, "day")


register_converter(HourConverter, "hour")


register_converter(LogFileConverter, "logfile")


urlpatterns = url_patterns(
    LogTreeViewSet,
    NotificationViewSet,
    QueryViewSet,
)
