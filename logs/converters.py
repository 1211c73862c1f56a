"""Path segments that name a time: zero-padded, and nothing else (404). Contract: Raw logs, Analytics."""

from __future__ import annotations

from django.urls import register_converter


class _NumberConverter:
    regex = ""
    width = 0

    def to_python(self, value: str) -> int:
        return int(value)

    def to_url(self, value: int) -> str:
        return f"{value:0{self.width}}"


class YearConverter(_NumberConverter):
    """``0001`` to ``9999``."""

    regex = "(?!0000)[0-9]{4}"
    width = 4


class MonthConverter(_NumberConverter):
    """``01`` to ``12``."""

    regex = "0[1-9]|1[0-2]"
    width = 2


class DayConverter(_NumberConverter):
    """``01`` to ``31``."""

    regex = "0[1-9]|[12][0-9]|3[01]"
    width = 2


class HourConverter(_NumberConverter):
    """``00`` to ``23``."""

    regex = "[01][0-9]|2[0-3]"
    width = 2


class LogFileConverter:
    """The name of a raw log object."""

    regex = r"[^/]+\.json"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(YearConverter, "year")
register_converter(MonthConverter, "month")
register_converter(DayConverter, "day")
register_converter(HourConverter, "hour")
register_converter(LogFileConverter, "logfile")
