"""Path parameters of logs and summaries for the contract: year, month, day, hour and log file."""

from __future__ import annotations

from typing import Final

from drf_spectacular.utils import OpenApiParameter


def _number(name: str, pattern: str) -> OpenApiParameter:
    return OpenApiParameter(
        name, {"type": "string", "pattern": f"^{pattern}$"}, OpenApiParameter.PATH, description="Zero-padded."
    )


YEAR: Final = _number("year", "[0-9]{4}")
MONTH: Final = _number("month", "(0[1-9]|1[0-2])")
DAY: Final = _number("day", "(0[1-9]|[12][0-9]|3[01])")
HOUR: Final = _number("hour", "([01][0-9]|2[0-3])")
FILE: Final = OpenApiParameter("file", {"type": "string", "pattern": r"\.json$"}, OpenApiParameter.PATH)
