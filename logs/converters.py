"""Path converters for zero-padded years, months, days and hours, and for log files.

Importing this module registers them. Other segments answer 404. Contract: Raw logs, Analytics.
"""

from __future__ import annotations

from django.urls import register_converter
from django.urls.converters import StringConverter


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
