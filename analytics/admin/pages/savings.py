"""What the cache saves on the warehouse's bill: the page, and the first figure of a tenant's overview."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from analytics.admin.pages.insights import WindowForm, WindowPage
from analytics.savings.reading import MAX_DAYS, find_source, read_savings
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.timestamps import days_before
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping
    from uuid import UUID

    from logs.audit import Reader

_DEFAULT_DAYS: Final = 28


def savings_of(tenant: UUID, *, first: dt.date, last: dt.date, reader: Reader) -> dict[str, Any]:
    """Return the members of `Savings`.

    Raises:
        ApiError: there are too many days or log entries, or the query failed.
    """
    source = find_source(tenant=tenant, first=first, last=last, step="day")
    savings: dict[str, Any] = json.loads(read_savings(default_store(), source, reader=reader)[1])
    return savings


class SavingsPage(WindowPage):
    """Billed time and busy time, with and without the cache."""

    title = "Savings"
    template_name = "backoffice/tenant/savings.html"

    def read(self) -> Mapping[str, Any]:
        if "first" not in self.request.GET:
            first = days_before(self.last_day, _DEFAULT_DAYS - 1)
            return {
                "form": WindowForm(initial={"first": first, "last": self.last_day}),
                "max_days": MAX_DAYS,
            }
        form = WindowForm(self.request.GET)
        content: dict[str, Any] = {"form": form, "max_days": MAX_DAYS}
        if form.is_valid():
            days = form.cleaned_data
            try:
                savings = savings_of(
                    self.tenant.pk, first=days["first"], last=days["last"], reader=self.reader
                )
                content |= {"savings": savings, "hours": _chart_of(savings)}
            except ApiError as error:
                content["error"] = error
        return content


def _chart_of(savings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of the chart: hours awake by hour of the day, with what the cache spared."""
    hours = savings["hours"]
    return {
        "labels": [f"{row['hour']:02}:00" for row in hours],
        "bars": [
            {"label": "Awake", "color": "miss", "values": [_hours(row["awakeMs"]) for row in hours]},
            {
                "label": "Spared by the cache",
                "color": "saved",
                "values": [_hours(row["awakeWithoutMs"] - row["awakeMs"]) for row in hours],
            },
        ],
        "line": {
            "label": "Spared, %",
            "values": [
                round(100 - 100 * row["awakeMs"] / row["awakeWithoutMs"], 1)
                if row["awakeWithoutMs"]
                else None
                for row in hours
            ],
        },
        "marks": [],
    }


def _hours(ms: int) -> float:
    return round(ms / 3_600_000, 1)
