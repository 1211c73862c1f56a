"""Serializers of reports, of the timeline and of the preview of an invalidation."""

from __future__ import annotations

from typing import Any, get_args

from rest_framework.exceptions import ValidationError

from accounts.serializers.history import PageParameters
from analytics.reports.reading import MAX_DAYS
from analytics.reports.timeline import STEPS
from analytics.savings.reading import MAX_DAYS as MAX_SAVINGS_DAYS
from analytics.savings.reading import STEPS as SAVINGS_STEPS
from analytics.summaries.activity import DEFAULT_DAYS
from analytics.summaries.activity import MAX_DAYS as MAX_ACTIVITY_DAYS
from analytics.summaries.statements import NO_RULE, StatementOrder
from logs.columns import CACHE_STATUSES
from tenantadmin.lib.http.serializers import (
    DayField,
    OneOfField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)

TIMELINE_STEPS = list(STEPS)
STATEMENT_ORDERS = list(get_args(StatementOrder))


class ReportParameters(StrictSerializer):
    """The days of a report, both included."""

    to = DayField(help_text=f"The last day; at most {MAX_DAYS} days.")

    def get_fields(self) -> dict[str, Any]:
        return {"from": DayField(help_text="The first day."), **super().get_fields()}


class ActivityParameters(StrictSerializer):
    """The days, both included."""

    to = DayField(required=False, help_text="The last day. Default: the last day with entries.")

    def get_fields(self) -> dict[str, Any]:
        first = DayField(required=False, help_text=f"The first day. Default: {DEFAULT_DAYS} days in all.")
        return {"from": first, **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a period that ends before it begins, or is too long."""
        if "from" in attrs and "to" not in attrs:
            raise ValidationError({"to": "Give 'to' with 'from'."})
        if "from" in attrs and not 0 <= (attrs["to"] - attrs["from"]).days < MAX_ACTIVITY_DAYS:
            message = f"'from' is at most {MAX_ACTIVITY_DAYS - 1} days before 'to'."
            raise ValidationError({"from": message})
        return attrs


class StatementsParameters(ReportParameters):
    """The days, which of their statements are listed, and their order."""

    statement = StrictCharField(
        required=False,
        max_length=1000,
        trim_whitespace=False,
        help_text="A part of the standardized SQL; case is ignored.",
    )
    rule = StrictCharField(
        required=False,
        max_length=128,
        trim_whitespace=False,
        help_text=f"The rule of the latest request; `{NO_RULE}`: no rule decided.",
    )
    mainRule = StrictCharField(  # noqa: N815
        required=False, max_length=128, trim_whitespace=False, help_text=f"`mainRule`; `{NO_RULE}`: null."
    )
    status = OneOfField(choices=CACHE_STATUSES, required=False, help_text="Of the latest request.")
    order = OneOfField(
        choices=STATEMENT_ORDERS,
        default="warehouse",
        help_text="Most first; `hit-rate`: the lowest first.",
    )
    limit = StrictIntegerField(min_value=1, max_value=1000, default=200)


class TrafficParameters(PageParameters):
    """The days, both included, and which of their requests are listed."""

    to = DayField(required=False, help_text=f"The last day; at most {MAX_DAYS} days. Default: today (UTC).")
    status = OneOfField(choices=CACHE_STATUSES, required=False)
    rule = StrictCharField(
        required=False, max_length=128, trim_whitespace=False, help_text=f"`{NO_RULE}`: no rule decided."
    )
    user = StrictCharField(
        required=False, allow_blank=True, max_length=1000, trim_whitespace=False, help_text="`userName`"
    )
    statement = StrictCharField(
        required=False,
        max_length=1000,
        trim_whitespace=False,
        help_text="A part of `standardizedSql`; case is ignored.",
    )
    queryHash = StrictCharField(required=False, max_length=200, trim_whitespace=False)  # noqa: N815
    minMs = StrictIntegerField(  # noqa: N815
        required=False, min_value=0, max_value=2**63 - 1, help_text="The least `responseTimeMs`."
    )
    cursor = StrictCharField(required=False, max_length=4000, help_text="From the `next` link of a page.")

    def get_fields(self) -> dict[str, Any]:
        first = DayField(required=False, help_text="The first day. Default: six days before `to`.")
        return {"from": first, **super().get_fields()}


class TimelineParameters(ReportParameters):
    step = OneOfField(choices=TIMELINE_STEPS, default="hour")


class SavingsParameters(StrictSerializer):
    """The days, both included."""

    to = DayField(help_text=f"The last day; at most {MAX_SAVINGS_DAYS} days.")
    step = OneOfField(
        choices=SAVINGS_STEPS, default="day", help_text="Whether the answer has `days` or `months`."
    )

    def get_fields(self) -> dict[str, Any]:
        return {"from": DayField(help_text="The first day."), **super().get_fields()}
