"""What the cache saves on the warehouse's bill: the page, and the first figure of a tenant's overview."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from analytics.admin.pages.insights import WindowPage
from analytics.admin.tenants import DEFAULT_RANGE
from analytics.savings.reading import MAX_DAYS, find_source, read_savings
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from logs.audit import Reader


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
    days = DEFAULT_RANGE
    max_days = MAX_DAYS
    figures = "backoffice/tenant/savings.html"

    def read_days(self, *, first: dt.date, last: dt.date) -> Mapping[str, Any]:
        savings = savings_of(self.tenant.pk, first=first, last=last, reader=self.reader)
        is_always_on = savings["pricing"][-1:] and savings["pricing"][-1]["billing"] == "always-on"
        chart = _chart_of_days(savings) if is_always_on else _chart_of_hours(savings)
        return {"savings": savings, "hours": chart, "is_always_on": is_always_on}


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
