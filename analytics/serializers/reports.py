"""Serializers of reports, of the timeline and of the preview of an invalidation."""

from __future__ import annotations

from typing import Any

from analytics.reports.reading import MAX_DAYS
from analytics.reports.timeline import STEPS
from tenantadmin.lib.http.serializers import (
    DayField,
    OneOfField,
    StrictSerializer,
)

TIMELINE_STEPS = list(STEPS)


class ReportParameters(StrictSerializer):
    """The days of a report, both included."""

    to = DayField(help_text=f"The last day; at most {MAX_DAYS} days.")

    def get_fields(self) -> dict[str, Any]:
        return {"from": DayField(help_text="The first day."), **super().get_fields()}


class TimelineParameters(ReportParameters):
    step = OneOfField(choices=TIMELINE_STEPS, default="hour")
