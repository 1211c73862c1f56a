"""Serializers of the explanation of a logged request."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from analytics.explain import SEARCHED_DAYS
from rules.serializers import ChosenRulesBody
from tenantadmin.lib.http.serializers import (
    DayField,
    StrictCharField,
)


class ExplainLoggedBody(ChosenRulesBody):
    """An entry of the log, and which rules decide it: by default those in force at its timestamp."""

    logId = StrictCharField(max_length=1000, trim_whitespace=False)
    day = DayField(
        required=False,
        help_text="The day of the entry in `proxy_logs`. "
        f"Default: the newest that has it, of the last {SEARCHED_DAYS} days with a log.",
    )
