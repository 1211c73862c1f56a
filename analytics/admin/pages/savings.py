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
    from collections.abc import Mapping, Sequence
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
                is_always_on = savings["pricing"][-1:] and savings["pricing"][-1]["billing"] == "always-on"
                chart = _chart_of_days(savings) if is_always_on else _chart_of_hours(savings)
                content |= {"savings": savings, "hours": chart, "is_always_on": is_always_on}
            except ApiError as error:
                content["error"] = error
        return content


def _chart_of_hours(savings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of the chart of hours awake by hour of the day."""
    hours = savings["hours"]
    labels = [f"{row['hour']:02}:00" for row in hours]
    times = [(row["awakeMs"], row["awakeWithoutMs"]) for row in hours]
    return _chart_of("Awake", labels, times, unit=3_600_000)


def _chart_of_days(savings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of the chart of a warehouse that is always on: how long statements ran, by day."""
    days = savings["days"]
    busy = [(row["withCache"]["busyMs"], row["without"]["busyMs"]) for row in days]
    return _chart_of("Warehouse time", [row["day"] for row in days], busy, unit=60_000)


def _chart_of(
    label: str, labels: Sequence[str], times: Sequence[tuple[int, int]], *, unit: int
) -> dict[str, Any]:
    """Return the data of a chart of times with and without the cache, with what the cache spared.

    ``unit`` is in milliseconds, as the times are.
    """
    return {
        "labels": labels,
        "bars": [
            {
                "label": label,
                "color": "miss",
                "values": [round(with_cache / unit, 1) for with_cache, _ in times],
            },
            {
                "label": "Spared by the cache",
                "color": "saved",
                "values": [round((without - with_cache) / unit, 1) for with_cache, without in times],
            },
        ],
        "line": {
            "label": "Spared, %",
            "values": [
                round(100 - 100 * with_cache / without, 1) if without else None
                for with_cache, without in times
            ],
        },
        "marks": [],
    }
