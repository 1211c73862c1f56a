"""The overview of one tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from accounts.admin.pages.base import PART
from analytics.admin.pages.base import LogPage
from analytics.admin.savings import savings_of
from analytics.admin.tenants import (
    DEFAULT_RANGE,
    RANGES,
    chart_of,
    read_overview,
    read_range,
)
from analytics.advice.recommendations import say_open_recommendations
from analytics.digest.verdict.judging import read_verdict
from analytics.summaries.activity import Range
from tenantadmin.lib.core.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping


class OverviewPage(LogPage):
    """Overview: hit rate, traffic and recent changes."""

    title = "Overview"
    template_name = "backoffice/tenant/overview.html"

    parts: ClassVar[Mapping[str, str]] = {
        "range": "backoffice/tenant/overview_range.html",
        "savings": "backoffice/tenant/overview_savings.html",
    }

    def read(self) -> Mapping[str, Any]:
        length = self.request.GET.get("days", "")
        days = int(length) if length in {str(choice) for choice in RANGES} else DEFAULT_RANGE
        if self.request.GET.get(PART) == "range":
            chosen = Range.ending(self.last_day, days=days)
            range_parts = read_range(self.tenant.pk, chosen)
            return {
                "range": chosen,
                "range_parts": range_parts,
                "logged_names": {it.rule_id: it.rule_name for it, _ in range_parts.rules}
                if range_parts
                else {},
                "statements": range_parts.statements if range_parts else (),
            }
        if self.request.GET.get(PART) == "savings":
            return self._read_savings(Range.ending(self.last_day, days=days))
        overview, verdict = read_overview(self.tenant.pk, days=days), read_verdict(self.tenant.pk)
        return {
            "verdict": verdict,
            "failed": overview.failed_beside(verdict),
            "advice": say_open_recommendations(self.tenant.pk),
            "overview": overview,
            "range": overview.range,
            "ranges": RANGES,
            "chart_data": chart_of(overview, tenant_id=self.tenant.pk),
        }

    def _read_savings(self, chosen: Range) -> Mapping[str, Any]:
        """Return the savings of a range; none if they cannot be computed, such as of too many entries."""
        content: dict[str, Any] = {"range": chosen}
        try:
            content["savings"] = savings_of(
                self.tenant.pk, first=chosen.first, last=chosen.last, reader=self.reader
            )
        except ApiError as error:
            content["error"] = error
        return content
